package catalog

import (
	"catalogd/catalog/commit"
	"catalogd/internal/deflate"
	"catalogd/vending"
)

// SnapshotsMode says which snapshots a load answers: all, or those that a ref points at.
type SnapshotsMode string

// The modes of the REST specification.
const (
	SnapshotsAll  SnapshotsMode = "all"
	SnapshotsRefs SnapshotsMode = "refs"
)

// LoadTableRequest asks for a table. IfNoneMatch are the client's tags, unquoted; a match answers NotModified.
type LoadTableRequest struct {
	Warehouse   string
	Ident       Identifier
	Snapshots   SnapshotsMode
	Delegated   bool // the client asked for vended credentials
	IfNoneMatch []string
}

// LoadedTable is the answer to a load, a create and a commit.
type LoadedTable struct {
	MetadataLocation string         // "" for a staged create
	Metadata         []byte         // JSON, as it goes to the client
	Packed           deflate.Packed // of Metadata; the zero value when it is not there packed
	Document         *commit.Document
	Config           map[string]string // client configuration; secrets inside when credentials were vended
	Credentials      *vending.Credentials
	ETag             string // unquoted; "" when the answer must not be cached
	NotModified      bool   // then only ETag is set
}

// CreateRequest asks for a new table or view in a namespace.
type CreateRequest[Body any] struct {
	Warehouse string
	Namespace Namespace
	Delegated bool // the client asked for vended credentials; views have none
	Body      Body
}

// CreateTableRequest asks for a new table. One that is to be staged takes no name.
type CreateTableRequest = CreateRequest[commit.CreateRequest]

// CreateViewRequest asks for a new view.
type CreateViewRequest = CreateRequest[commit.CreateViewRequest]

// ChangeRequest asks for changes to one table or view.
type ChangeRequest[Change any] struct {
	Warehouse string
	Ident     Identifier
	Change    Change
	// Fence is set by a worker whose lease must still hold.
	Fence Fence
}

// CommitTableRequest asks for changes to one table.
type CommitTableRequest = ChangeRequest[commit.Request]

// ReplaceViewRequest asks for changes to one view.
type ReplaceViewRequest = ChangeRequest[commit.ViewRequest]

// TableChange is one table's part of a multi-table commit.
type TableChange struct {
	Ident  Identifier
	Change commit.Request
}
