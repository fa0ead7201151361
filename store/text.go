package store

import (
	"strings"
	"unicode/utf8"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"catalogd/catalog"
	"catalogd/internal/fault"
)

// impossible stands for a name that Postgres cannot even be asked about. No name holds a control character, so it is
// found nowhere.
const impossible = "\x01"

// badTextMessage is for names and properties that Postgres refuses.
const badTextMessage = "a name or property holds text that cannot be stored: U+0000 or broken Unicode"

// checkNames refuses names that Postgres cannot hold before they are sent: without prepared statements U+0000 would
// end the statement's text and look like a defect of ours.
func checkNames(names ...string) error {
	for _, name := range names {
		if lookup(name) != name {
			return fault.New(fault.BadRequest, "%s", badTextMessage)
		}
	}
	return nil
}

// lookup makes a name safe to ask for: one that Postgres could not hold becomes one that is not there, so a miss is
// a miss and not an error.
func lookup(name string) string {
	if utf8.ValidString(name) && !strings.Contains(name, "\x00") {
		return name
	}
	return impossible
}

func lookupAll(names []string) []string { return texts(names, lookup) }

// texts gives the text of each thing in a list.
func texts[T any](list []T, text func(T) string) []string {
	all := make([]string, len(list))
	for i, one := range list {
		all[i] = text(one)
	}
	return all
}

// storable makes text for people safe to keep: subjects of refused attempts hold whatever a caller sent.
func storable(text string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(text, "\uFFFD"), "\x00", "\uFFFD")
}

// bounded is storable text that is cut at so many bytes.
func bounded(text string, bytes int) string {
	if len(text) > bytes {
		text = text[:bytes] + "..."
	}
	return storable(text)
}

// after makes the last name of a page safe to compare with. A stored name never holds U+0000, so whatever follows
// one does not change which names come later.
func after(name string) string {
	name, _, _ = strings.Cut(name, "\x00")
	return strings.ToValidUTF8(name, "\uFFFD")
}

// idTexts gives ids as texts, for a parameter that is cast: without prepared statements a list of ids has no type.
func idTexts(ids []uuid.UUID) []string { return texts(ids, uuid.UUID.String) }

// fold gives the form of a name under which warehouses that fold names compare it.
func fold(name string) string { return catalog.FoldName(lookup(name)) }

func foldAll(names []string) []string { return texts(names, fold) }

// foldIdent gives the whole identifier in that form, namespace first.
func foldIdent(id catalog.Identifier) []string { return append(foldAll(id.Namespace), fold(id.Name)) }

// wantedNames ends a statement that lists things by name, behind a condition: which are wanted, their order and how many.
const wantedNames = `
  AND name > @after::text AND starts_with(name, @prefix::text)
  AND (@contains::text = '' OR strpos(lower(name), lower(@contains::text COLLATE "C")) > 0)
ORDER BY name
LIMIT @limit::bigint`

// wantedArgs adds what wantedNames asks for to a statement's arguments.
func wantedArgs(q catalog.ListQuery, args pgx.NamedArgs) pgx.NamedArgs {
	if args == nil {
		args = pgx.NamedArgs{}
	}
	args["after"], args["limit"] = after(q.After), limit(q.Page)
	args["prefix"], args["contains"] = lookup(q.Prefix), lookup(q.Contains)
	return args
}
