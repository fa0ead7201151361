package store

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"catalogd/internal/fault"
)

// SQLSTATEs that have a meaning here.
const (
	stateUniqueViolation      = "23505"
	stateForeignKeyViolation  = "23503"
	stateSerializationFailure = "40001"
	stateDeadlock             = "40P01"
	stateLockNotAvailable     = "55P03"
	stateBadText              = "22021" // U+0000 or broken UTF-8 in a text
	stateBadJSONText          = "22P05" // \u0000 in a JSON document
	stateLimitExceeded        = "54000" // an index row that is too long, for one
	stateCannotConnectNow     = "57P03"
	stateAdminShutdown        = "57P01"
	stateCrashShutdown        = "57P02"
	stateTooManyConnections   = "53300"
	stateUndefinedTable       = "42P01"
	stateReadOnly             = "25006" // a standby, as during a failover, or a database that was set so
	stateDiskFull             = "53100"
	stateOutOfMemory          = "53200"
)

// violations gives the meaning of a violated constraint. What is not named here is a defect: Internal.
var violations = map[string]struct {
	kind    fault.Kind
	message string
}{
	"warehouses_name_key":         {fault.AlreadyExists, "Warehouse already exists"},
	"namespaces_warehouse_fkey":   {fault.NoSuchWarehouse, "Warehouse does not exist"},
	"namespaces_parent_fkey":      {fault.NamespaceNotEmpty, "Namespace is not empty."},
	"namespaces_levels_key":       {fault.AlreadyExists, "Namespace already exists"},
	"tables_warehouse_fkey":       {fault.NoSuchWarehouse, "Warehouse does not exist"},
	"tables_namespace_fkey":       {fault.NoSuchNamespace, "Namespace does not exist"},
	"tables_name_key":             {fault.AlreadyExists, "Table already exists"},
	"tables_folded_key":           {fault.AlreadyExists, "Table already exists"},
	"namespaces_folded_key":       {fault.AlreadyExists, "Namespace already exists"},
	"locations_pkey":              {fault.BadRequest, overlapMessage},
	"principals_name_key":         {fault.AlreadyExists, "Principal already exists"},
	"principals_client_id_key":    {fault.AlreadyExists, "Another principal has this client id"},
	"principal_roles_name_key":    {fault.AlreadyExists, "Principal role already exists"},
	"catalog_roles_name_key":      {fault.AlreadyExists, "Catalog role already exists"},
	"personal_tokens_name_key":    {fault.AlreadyExists, "Token already exists"},
	"events_pkey":                 {fault.CommitRace, "this commit was given up before it arrived"},
	"idempotency_keys_pkey":       {fault.RepeatLanded, "another request with this Idempotency-Key came to its end before"},
	"staged_tables_pkey":          {fault.AlreadyExists, "a staged create has this table uuid already"},
	"principal_role_members_pkey": {fault.AlreadyExists, "the principal has the role already"},
	"catalog_role_members_pkey":   {fault.AlreadyExists, "the principal role has the catalog role already"},
}

// translate gives an error its meaning. Faults pass as they are; so do the causes of what is a defect here.
func translate(err error) error {
	if err == nil {
		return nil
	}
	var known *fault.Error
	if errors.As(err, &known) {
		return err
	}
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return translateState(err, pg)
	}
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return fault.Wrap(fault.Busy, err, "the request ended before the database had answered; nothing changed")
	case connectionLost(err):
		return fault.Wrap(fault.Busy, err, "the database does not answer; nothing changed")
	}
	return err
}

func translateState(err error, pg *pgconn.PgError) error {
	switch pg.Code {
	case stateUniqueViolation, stateForeignKeyViolation:
		if v, ok := violations[pg.ConstraintName]; ok {
			return fault.Wrap(v.kind, err, "%s", v.message)
		}
	case stateBadText, stateBadJSONText:
		return fault.Wrap(fault.BadRequest, err, "%s", badTextMessage)
	case stateLimitExceeded:
		return fault.Wrap(fault.BadRequest, err, "a name is too long")
	case stateSerializationFailure, stateDeadlock:
		return fault.Wrap(fault.Busy, err, "too many requests change the same thing at once; nothing changed")
	case stateCannotConnectNow, stateAdminShutdown, stateCrashShutdown, stateTooManyConnections:
		return fault.Wrap(fault.Busy, err, "the database does not take requests now; nothing changed")
	case stateReadOnly, stateDiskFull, stateOutOfMemory:
		return fault.Wrap(fault.Busy, err, "the database takes no changes now: %s; nothing changed", noChanges[pg.Code])
	case stateUndefinedTable:
		return fault.Wrap(fault.Internal, err, "the database's schema is older than this server: run `catalogd migrate`")
	}
	return err
}

// noChanges says why a database that answers takes no changes.
var noChanges = map[string]string{
	stateReadOnly: "it is read-only, as a standby is", stateDiskFull: "its disk is full", stateOutOfMemory: "it is out of memory",
}

// retryable tells that a transaction that failed with err, before COMMIT was sent or with a certain refusal, may do
// better when it is run again.
func retryable(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return pg.Code == stateSerializationFailure || pg.Code == stateDeadlock ||
			pg.Code == stateAdminShutdown || pg.Code == stateCrashShutdown || pg.Code == stateCannotConnectNow
	}
	return connectionLost(err)
}

// connectionLost tells that the database could not be reached or went away.
func connectionLost(err error) bool {
	var connect *pgconn.ConnectError
	var network net.Error
	var pg *pgconn.PgError
	switch {
	case err == nil, errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return false
	case errors.As(err, &pg):
		return pg.Code == stateAdminShutdown || pg.Code == stateCrashShutdown || pg.Code == stateCannotConnectNow
	case errors.As(err, &connect), errors.As(err, &network):
		return true
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
		return true
	case errors.Is(err, pgconn.ErrConnClosed): // it broke some messages ago, so the driver does not call it safe to retry
		return true
	}
	return pgconn.SafeToRetry(err)
}

// commitOutcome tells a certain refusal of COMMIT from an answer that never came. A FATAL answer means that the
// session was ended, perhaps after the commit; only an ERROR proves that it was rolled back.
func commitOutcome(err error) error {
	var pg *pgconn.PgError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, pgx.ErrTxCommitRollback):
		return fault.Wrap(fault.Internal, err, "the transaction was rolled back")
	case errors.As(err, &pg) && strings.EqualFold(pg.SeverityUnlocalized, "ERROR"):
		return err
	}
	return fault.Wrap(fault.CommitUnknown, err, "the database's answer to the commit was lost")
}

// sentOutcome is commitOutcome of a commit that was sent whole. What failed before it was sent is certain as well.
func sentOutcome(err error) error {
	var unprepared pgx.ErrPreprocessingBatch
	if errors.As(err, &unprepared) || pgconn.SafeToRetry(err) {
		return err
	}
	return commitOutcome(err)
}

// violates tells that err is the violation of the constraint.
func violates(err error, constraint string) bool {
	var pg *pgconn.PgError
	return errors.As(err, &pg) && pg.ConstraintName == constraint
}
