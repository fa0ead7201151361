package maintenance

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"catalogd/catalog/commit"
	"catalogd/vending"
)

// CodeNewerMetadata is a purge's reason code: files of the table's place tell that somebody went on with the table.
const CodeNewerMetadata = "newer-metadata"

// clockMargin is by how much the clocks of the database and of an object store may differ: stores refuse requests whose
// clock is further off.
const clockMargin = 15 * time.Minute

// sight is a metadata file in a table's place that the database does not know.
type sight struct {
	name    string
	written time.Time
}

// successor gives a metadata file that this server does not know and that may be what became of the dropped table, ""
// for none: a database that was restored from a backup knows neither who got the table back since, nor what was
// committed. What was written before the drop is a leftover of a commit that came to nothing, and so is what has no
// higher number than the known file and is not younger. All else counts: the purge removes nothing in doubt.
func (p *purge) successor(document *commit.Document, logged []string) (string, error) {
	current := vending.Plain(p.dropped.Record.MetadataLocation)
	known := map[string]bool{current: true}
	for _, name := range logged {
		known[vending.Plain(name)] = true
	}
	var written time.Time // when the known file was
	var unknown []sight
	folders := []string{commit.MetadataFolder(document), current[:strings.LastIndexByte(current, '/')]}
	err := eachMetadata(p.files, p.dropped.Record.Location, folders, func(name string, i fs.FileInfo) {
		switch plain := vending.Plain(name); {
		case plain == current:
			written = i.ModTime()
		case !known[plain] && !i.ModTime().Before(p.dropped.DroppedAt.Add(-clockMargin)):
			unknown = append(unknown, sight{name, i.ModTime()})
		}
	})
	if err != nil {
		return "", fmt.Errorf("list the metadata files of dropped table %s: %w", p.job.Subject, err)
	}
	unknown = slices.DeleteFunc(unknown, func(s sight) bool {
		return commit.FileNumber(s.name) <= commit.FileNumber(current) && !s.written.After(written)
	})
	if len(unknown) == 0 {
		return "", nil
	}
	return slices.MaxFunc(unknown, func(a, b sight) int { return a.written.Compare(b.written) }).name, nil
}

// eachMetadata calls visit for each metadata file in a table's usual folder for them and in others below its location.
func eachMetadata(files Files, location string, others []string, visit func(name string, i fs.FileInfo)) error {
	var seen []string
	for _, folder := range append([]string{location + "/metadata"}, others...) {
		below, inside := vending.Relative(location, folder)
		if !inside || below == "" || slices.ContainsFunc(seen, func(f string) bool { return vending.Within(f, folder) }) {
			continue
		}
		seen = append(seen, folder)
		err := files.WalkDir(folder, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || !commit.NamesMetadata(name) {
				return err
			}
			i, err := entry.Info()
			if err == nil {
				visit(name, i)
			}
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// refuseSuccessor ends a purge of a table that lives on.
func (p *purge) refuseSuccessor(document *commit.Document, logged []string) error {
	name, err := p.successor(document, logged)
	if err != nil || name == "" {
		return err
	}
	return refusal{Reason{CodeNewerMetadata, fmt.Sprintf("the table's place has metadata that this server does not know and that may be newer than "+
		"what it dropped: %s. Perhaps the database was restored from a backup, and the table lives on. No file was removed. If it does, register its "+
		"newest metadata file; if that file is nobody's, remove it, register %s and drop the table with purge again", name,
		p.dropped.Record.MetadataLocation)}}
}

// livesElsewhere gives a metadata file that only a database can have made which knows more commits than this one, ""
// for none. A commit that came to nothing leaves a file with the number after the current one's; one with a higher
// number follows on a commit that landed. A job that has been at it for long sees any as such: it may have come with
// a backup.
func (c *compaction) livesElsewhere() (string, error) {
	record, found := c.view.record, ""
	newest := commit.FileNumber(record.MetadataLocation) + 1
	if !c.job.StartedAt.IsZero() && c.env.now().Sub(c.job.StartedAt) > clockMargin {
		newest--
	}
	folders := []string{record.MetadataLocation[:strings.LastIndexByte(record.MetadataLocation, '/')]}
	if folder := c.view.meta.Properties()["write.metadata.path"]; folder != "" {
		folders = append(folders, strings.TrimRight(folder, "/"))
	}
	err := eachMetadata(c.view.files, record.Location, folders, func(name string, _ fs.FileInfo) {
		if n := commit.FileNumber(name); n > newest {
			found, newest = name, n
		}
	})
	if err != nil {
		return "", fmt.Errorf("list the metadata files of %s: %w", c.ref.Ident, err)
	}
	return found, nil
}
