package catalog

import (
	"context"
	"time"

	"github.com/google/uuid"

	"catalogd/auth"
	"catalogd/authz"
	"catalogd/internal/deflate"
	"catalogd/vending"
)

// Store is everything the domain needs of the database. The Postgres store and the in-memory fake pass the same
// suite (catalog/catalogtest). Each method is one transaction; every mutation writes its Fact in it.
type Store interface {
	Resolver
	NamespaceStore
	NameStore
	TableStore
	CommitStore
	WarehouseStore
	IdempotencyStore
	MetadataStore
	MetricsStore
	UpkeepStore
	FeedStore
}

// Resolver answers what a request names and what the caller may do there.
type Resolver interface {
	// Resolve never fails because something is missing; it leaves it nil. One round trip.
	Resolve(ctx context.Context, l Lookup) (Resolution, error)
	// ResolveGrants gives the caller's grants on the root, and its state as of a Resolution.
	ResolveGrants(ctx context.Context, l Lookup) (grants []authz.Grant, state *auth.CallerState, err error)
	// ResolveWarehouses gives what a caller may mean who names no warehouse. One round trip.
	ResolveWarehouses(ctx context.Context, p auth.Principal) (NamedByNobody, error)
	// RecordDenial writes an audit row for a refused attempt.
	RecordDenial(ctx context.Context, d Denial) error
}

// NamedByNobody are the warehouses that a request without a warehouse's name may be about, by name and at most two of
// each kind: two are as many as a thousand to somebody who has to choose.
type NamedByNobody struct {
	Caller     *auth.CallerState // as of a Resolution
	RootGrants []authz.Grant
	Granted    []Warehouse // in which the caller holds any grant
	All        []Warehouse // of the service
}

// NamespaceCreate is a namespace about to be made. Location is set when the client chose one.
type NamespaceCreate struct {
	Record      NamespaceRecord
	WarehouseID uuid.UUID
	Location    string // to reserve; "" reserves nothing
	Fact        Fact
}

// NamespaceUpdate changes properties. A Location that changed is reserved in the same transaction.
type NamespaceUpdate struct {
	ID          uuid.UUID
	WarehouseID uuid.UUID
	Set         map[string]string
	Remove      []string
	Fact        Fact
}

// NamespaceStore keeps namespaces.
type NamespaceStore interface {
	// CreateNamespace: fault.AlreadyExists when the name is taken; fault.NoSuchNamespace when the parent is missing.
	CreateNamespace(ctx context.Context, c NamespaceCreate) error
	// UpdateNamespace merges and gives the properties as they were before, read under the row's lock.
	UpdateNamespace(ctx context.Context, u NamespaceUpdate) (before map[string]string, err error)
	// DropNamespace: fault.NamespaceNotEmpty when a table, a view or a child is in it (race-free);
	// fault.NoSuchNamespace when it is gone.
	DropNamespace(ctx context.Context, id uuid.UUID, f Fact) error
}

// NamesWanted asks for a page of names in the order of their bytes: those of a namespace's tables and views, or last
// levels of the namespaces below it.
type NamesWanted struct {
	WarehouseID uuid.UUID
	In          uuid.UUID // a namespace; of KindNamespace, uuid.Nil is the warehouse itself
	Kind        Kind      // "" for tables and views
	Page        Page
	// GrantedTo, unless nil, leaves those tables and views on which a principal's active roles hold one of the privileges
	// by a grant on the very table or view: what somebody may see who may not see all that is in the namespace.
	GrantedTo *GrantedTo
}

// GrantedTo are a principal and privileges.
type GrantedTo struct {
	Principal  auth.Principal
	Privileges []authz.Privilege
}

// NameStore lists what is in namespaces. A page is what was there at one moment, however long it is. It comes in pieces
// of some thousand names at most, and ends when each gives false; each must not wait for anybody, for it holds one of
// the store's connections.
type NameStore interface {
	// ListNames gives the names to each. Of what is not there, there are none.
	ListNames(ctx context.Context, w NamesWanted, each func(names []string) bool) error
	// ResolveNames is Resolve together with a list: names says what to list after what was found, false for nothing, and
	// does nothing else. It may be called more than once, last with the Resolution that is given back, and each is not
	// called before. As a rule one round trip for both.
	ResolveNames(ctx context.Context, l Lookup, names func(Resolution) (NamesWanted, bool), each func(names []string) bool) (Resolution, error)
}

// Place is where a table or a view is: in a namespace, under the name that it was made with there.
type Place struct {
	NamespaceID uuid.UUID
	Name        string
}

// TableRename moves a table or a view to another name.
type TableRename struct {
	ID                uuid.UUID
	Kind              Kind
	From              Place // where it must still be, else fault.CommitRace; the zero value: wherever it is
	TargetNamespaceID uuid.UUID
	Source, Target    Identifier
	Fact              Fact
}

// TableDrop is a soft delete of a table or a view.
type TableDrop struct {
	ID             uuid.UUID
	Kind           Kind
	Ident          Identifier
	From           Place // as of a TableRename
	PurgeRequested bool
	Purge          PurgeJob // added when a purge of a table is requested
	// Unregistered gives the table up: whoever registers it next, wherever, gets its location.
	Unregistered bool
	// At, unless "", is the metadata location that must still be current, else fault.CommitRace.
	At   string
	Fact Fact
}

// PurgeJob is the job that removes a dropped table's files.
type PurgeJob struct {
	ID    uuid.UUID
	Delay time.Duration // before it may begin
}

// StagedTable remembers a staged create until its commit, so that its credentials can be refreshed.
type StagedTable struct {
	UUID        uuid.UUID
	WarehouseID uuid.UUID
	Ident       Identifier
	Location    string
	PrincipalID uuid.UUID
	Restores    bool // as PointerChange.Restores
	TTL         time.Duration
}

// TableStore keeps tables and views, apart from moving their pointers. What is gone is fault.NoSuchTable or
// fault.NoSuchView, by the kind.
type TableStore interface {
	// RenameTable: fault.AlreadyExists when a table or view has the name. To its own name is no change and leaves no fact
	// but its Outcome. fault.CommitRace when it is not at From any more.
	RenameTable(ctx context.Context, r TableRename) error
	// DropTable keeps the location reserved; a table or view of the same name may take it, and so may the table
	// itself when it is registered again in its namespace, or anywhere when it was unregistered.
	DropTable(ctx context.Context, d TableDrop) error
	// StageTable remembers a staged create and reserves its location (fault.BadRequest on overlap, as below).
	StageTable(ctx context.Context, s StagedTable) error
	// FindStagedTables gives the live staged creates of a name, newest first.
	FindStagedTables(ctx context.Context, warehouseID uuid.UUID, ident Identifier) ([]StagedTable, error)
	// FindTableByFile gives the table of a warehouse that owns the place of a file, present or former, whatever its name is
	// now; also a dropped one whose files are there. It has no namespace's id. nil when there is none.
	FindTableByFile(ctx context.Context, warehouseID uuid.UUID, file string) (*TableRecord, error)
}

// PointerChange is one table's or view's part of a commit: a swap when Old is set, a creation when it is "".
type PointerChange struct {
	Record      TableRecord // as it will be: kind, new metadata location, location, format version
	WarehouseID uuid.UUID
	Old         string // the metadata location that must still be current; "" creates the row
	From        Place  // of a swap, as of a TableRename
	// StagedUUID releases the staged row of that uuid, whose location passes to the table; uuid.Nil: none.
	StagedUUID uuid.UUID
	// OldLocation is set when a swap moves the table's location: the new one is reserved in the same transaction.
	OldLocation string
	// Packed is the text of the new metadata file, to be kept beside the pointer; the zero value keeps nothing.
	Packed deflate.Packed
	// Registered tells that the metadata file was there before: the location may be that of a dropped table with the
	// record's uuid, unless its purge has begun. fault.Busy while housekeeping is removing that very file.
	Registered bool
	// Restores lets a registration have a dropped table whose namespace is gone, or not known, and a creation its place
	// when namespace and name are as they were.
	Restores bool
	// Outdated are metadata files that the table does not name any more and that may be removed after the grace period,
	// as vending.Plain spells them.
	Outdated []string
	// Maintenance is the state of catalogd.maintenance.enabled in the new properties (nil: not set there).
	Maintenance *bool
	Fact        Fact
}

// Fence lets a commit of a worker through only while its lease holds. The zero value fences nothing.
type Fence struct {
	JobID uuid.UUID
	Epoch int64
}

// CommitStore moves pointers.
type CommitStore interface {
	// CommitPointers applies all changes or none, in one transaction, and writes their facts.
	//   fault.CommitRace      a pointer moved (retry on the server), or the fence does not hold (fault.VersionConflict)
	//   fault.AlreadyExists   a creation's name is taken by a table or view (message as the reference's)
	//   fault.NoSuchTable     the row of a swap is gone
	//   fault.NoSuchNamespace the namespace of a creation is gone
	//   fault.BadRequest      the location overlaps somebody else's (the message does not name whose)
	//   fault.CommitUnknown   the outcome is unknown: ask CommitLanded
	CommitPointers(ctx context.Context, changes []PointerChange, fence Fence) error
	// CheckPlaces gives the refusal that CommitPointers would give for the locations of new and moved tables as things
	// are now, and changes nothing. What it lets pass may still be refused then.
	CheckPlaces(ctx context.Context, changes []PointerChange) error
	// CommitLanded settles the outcome of an unknown commit by the first change's Fact.ID: true means landed; false
	// means that it did not and never will. An error means that nobody knows yet.
	CommitLanded(ctx context.Context, commitID uuid.UUID) (bool, error)
}

// WarehouseStore keeps warehouses.
type WarehouseStore interface {
	// CreateWarehouse: fault.AlreadyExists when the name is taken; fault.BadRequest when its base location lies
	// inside or around another warehouse's. It also makes the catalog role catalog_admin (CATALOG_MANAGE_ACCESS,
	// CATALOG_MANAGE_METADATA and CATALOG_MANAGE_CONTENT on the warehouse), given to the creator's principal
	// role service_admin, so that who made a warehouse can use it.
	CreateWarehouse(ctx context.Context, w Warehouse, f Fact) error
	// FindWarehouse: fault.NoSuchWarehouse.
	FindWarehouse(ctx context.Context, name string) (Warehouse, error)
	// ListWarehouses gives all by name.
	ListWarehouses(ctx context.Context, q ListQuery) ([]Warehouse, error)
	// UpdateWarehouse replaces properties and storage when the version matches, else fault.VersionConflict.
	UpdateWarehouse(ctx context.Context, w Warehouse, f Fact) error
	// DropWarehouse: fault.NamespaceNotEmpty while a namespace is in it.
	DropWarehouse(ctx context.Context, id uuid.UUID, f Fact) error
}

// MetadataIO reads and writes metadata files. The server reaches a table's files with credentials narrowed to that
// table, as a client would.
type MetadataIO interface {
	// WriteMetadata creates the file at the absolute URI; never over an existing one (fault.Internal then).
	WriteMetadata(ctx context.Context, at vending.FilePlace, body []byte) error
	// ReadMetadata gives the file's bytes, unpacked when its name says gzip. fault.FileNotFound when it is gone.
	ReadMetadata(ctx context.Context, at vending.FilePlace) ([]byte, error)
	// ReadForeign is ReadMetadata of a file that a client named. Before more than free bytes of it are in memory, packed
	// or not, it calls larger, once; that one's error ends it.
	ReadForeign(ctx context.Context, at vending.FilePlace, free int64, larger func(context.Context) error) ([]byte, error)
	// StatMetadata: fault.FileNotFound when it is gone.
	StatMetadata(ctx context.Context, at vending.FilePlace) error
	// RemoveMetadata deletes one file, best effort; only for files whose commit is known to be refused.
	RemoveMetadata(ctx context.Context, at vending.FilePlace)
	// PrepareTable makes a new table's data and metadata folders where folders exist (file:), else nothing.
	PrepareTable(ctx context.Context, at vending.FilePlace) error
}

// Clock gives the time; tests set it.
type Clock func() time.Time
