package vending

import (
	"strings"

	"catalogd/internal/fault"
)

// Limits of locations. A session policy names the location twice and may be 2,048 characters long, so a location
// that passes here can always be vended for.
const (
	locationBytesMax = 700
	bucketBytesMin   = 3
	bucketBytesMax   = 63
	fileNameBytesMax = 255
)

// forbiddenInLocations are printable characters that some reader of a location takes for something else: wildcards
// and variables of policies, query and fragment of URIs, escapes, quotes, and the other system's separator.
const forbiddenInLocations = `*?$%#\"`

// Canonical gives the one spelling of a location in which it is stored and answered: no trailing slash, `file:///x`
// for all forms of file URIs, the scheme as given otherwise (s3, s3a, s3n). What two readers could understand
// differently is refused with fault.BadRequest and never repaired: dot segments, empty segments, escapes, wildcards,
// control characters, anything outside ASCII. The root of a bucket is refused; CanonicalBase accepts it.
func Canonical(location string) (string, error) {
	return canonical(location, tableLocation)
}

// CanonicalBase is Canonical for what holds tables: a warehouse's base and its allowed locations. A whole bucket
// passes, the root of a file system does not.
func CanonicalBase(location string) (string, error) {
	return canonical(location, baseLocation)
}

// Within tells whether location is base or lies below it, compared slash-terminated, so that `t1` is not above
// `t10`. s3, s3a and s3n are one scheme. The location may be a file's: what follows base may hold characters that
// Canonical refuses, for writers put partition values there, but no dot segments, controls, backslashes, and no
// question mark or hash, at which clients cut. A base that is not canonical holds nothing.
func Within(base, location string) bool {
	_, ok := Relative(base, location)
	return ok
}

// Relative gives what follows base and its slash in location, "" when they are the same place. It is false where
// Within is.
func Relative(base, location string) (string, bool) {
	b, err := CanonicalBase(base)
	if err != nil {
		return "", false
	}
	want, got := comparison(b), comparison(location)
	if got == want || got == want+"/" {
		return "", true
	}
	below, ok := strings.CutPrefix(got, want+"/")
	if !ok || !safeBelow(below) {
		return "", false
	}
	return below, true
}

// Key is the spelling under which a location is reserved: slash-terminated, s3 for s3a and s3n, lower case, since
// some stores and file systems take names that differ only in case for one place. It is for comparing only. The
// location must be canonical; Key itself refuses nothing.
func Key(location string) string {
	return strings.ToLower(strings.TrimSuffix(comparison(location), "/")) + "/"
}

// Plain is the one spelling under which a file is compared with others: s3 for s3a and s3n, `file:///`, and no empty
// segments in a file system, where they mean nothing. It leads to the same file.
func Plain(file string) string {
	plain := comparison(file)
	path, ok := FilePath(plain)
	if !ok {
		return plain
	}
	for strings.Contains(path, "//") {
		path = strings.ReplaceAll(path, "//", "/")
	}
	return "file://" + path
}

// Spellings gives a file's plain spelling and those that differ from it in the scheme alone.
func Spellings(file string) []string {
	plain := Plain(file)
	if rest, ok := strings.CutPrefix(plain, "s3://"); ok {
		return []string{plain, "s3a://" + rest, "s3n://" + rest}
	}
	if path, ok := FilePath(plain); ok {
		return []string{plain, "file:" + path}
	}
	return []string{plain}
}

// SplitS3 gives bucket and key of an s3, s3a or s3n URI; false for everything else. The key is taken as it stands:
// nothing is unescaped.
func SplitS3(uri string) (bucket, key string, ok bool) {
	rest, ok := strings.CutPrefix(comparison(uri), "s3://")
	if !ok {
		return "", "", false
	}
	bucket, key, _ = strings.Cut(rest, "/")
	return bucket, key, validBucket(bucket)
}

// FilePath gives the absolute path of a file URI; false for everything else. Nothing is unescaped.
func FilePath(uri string) (string, bool) {
	path, ok := strings.CutPrefix(comparison(uri), "file://")
	return path, ok && strings.HasPrefix(path, "/")
}

type locationKind int

const (
	tableLocation locationKind = iota
	baseLocation
)

func canonical(location string, kind locationKind) (string, error) {
	if len(location) > locationBytesMax {
		return "", fault.New(fault.BadRequest, "location is %d bytes long; at most %d are allowed", len(location), locationBytesMax)
	}
	for i := range len(location) {
		c := location[i]
		if c < 0x20 || c > 0x7e || strings.IndexByte(forbiddenInLocations, c) >= 0 {
			return "", refuse(location, "the character %q at byte %d is not allowed in locations", rune(c), i)
		}
	}
	scheme, rest, ok := strings.Cut(location, ":")
	if !ok {
		return "", refuse(location, "it must be an absolute URI such as s3://bucket/path")
	}
	switch scheme {
	case "s3", "s3a", "s3n":
		return canonicalS3(location, scheme, rest, kind)
	case "file":
		return canonicalFile(location)
	}
	return "", refuse(location, "the scheme must be s3, s3a, s3n or file")
}

func canonicalS3(location, scheme, rest string, kind locationKind) (string, error) {
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return "", refuse(location, "%s: must be followed by //bucket/path", scheme)
	}
	bucket, path, _ := strings.Cut(strings.TrimSuffix(rest, "/"), "/")
	if !validBucket(bucket) {
		return "", refuse(location, "%q is not the name of a bucket", bucket)
	}
	if path == "" && strings.HasSuffix(rest, "//") {
		return "", refuse(location, "it has an empty segment")
	}
	if path == "" {
		if kind == tableLocation {
			return "", refuse(location, "it must not be a whole bucket")
		}
		return scheme + "://" + bucket, nil
	}
	if err := checkSegments(location, path); err != nil {
		return "", err
	}
	return scheme + "://" + bucket + "/" + path, nil
}

func canonicalFile(location string) (string, error) {
	path, ok := FilePath(location)
	if !ok {
		return "", refuse(location, "a file location must be absolute, as file:///path")
	}
	path = strings.TrimSuffix(path, "/")
	if path == "" {
		return "", refuse(location, "it must not be the root of the file system")
	}
	if err := checkSegments(location, path[1:]); err != nil {
		return "", err
	}
	for segment := range strings.SplitSeq(path, "/") {
		if len(segment) > fileNameBytesMax {
			return "", refuse(location, "a segment is %d bytes long; file systems take at most %d", len(segment), fileNameBytesMax)
		}
	}
	return "file://" + path, nil
}

// comparison puts the scheme into the spelling that comparisons use and leaves the rest alone.
func comparison(location string) string {
	for _, scheme := range []string{"s3a://", "s3n://"} {
		if rest, ok := strings.CutPrefix(location, scheme); ok {
			return "s3://" + rest
		}
	}
	if rest, ok := strings.CutPrefix(location, "file:/"); ok && !strings.HasPrefix(rest, "/") {
		return "file:///" + rest
	}
	return location
}

func checkSegments(location, path string) error {
	for segment := range strings.SplitSeq(path, "/") {
		switch {
		case segment == "":
			return refuse(location, "it has an empty segment")
		case segment == "." || segment == "..":
			return refuse(location, "it has the segment %q", segment)
		case segment[0] == ' ' || segment[len(segment)-1] == ' ':
			return refuse(location, "the segment %q begins or ends with a space", segment)
		}
	}
	return nil
}

func safeBelow(below string) bool {
	for _, r := range below {
		if r < 0x20 || r == 0x7f || r == '\uFFFD' || r == '\\' || r == '?' || r == '#' {
			return false
		}
	}
	for segment := range strings.SplitSeq(below, "/") {
		if segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

func validBucket(name string) bool {
	if len(name) < bucketBytesMin || len(name) > bucketBytesMax || strings.Contains(name, "..") {
		return false
	}
	for i := range len(name) {
		c := name[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && c != '-' && c != '.' && c != '_' {
			return false
		}
	}
	return name[0] != '.' && name[len(name)-1] != '.'
}

func refuse(location, format string, args ...any) error {
	why := fault.New(fault.BadRequest, format, args...).Message
	return fault.New(fault.BadRequest, "location %q is refused: %s", location, why)
}
