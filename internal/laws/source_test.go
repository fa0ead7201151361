package laws

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// modulePath is go.mod's module.
const modulePath = "catalogd"

// sourceFile is one Go file of the module.
type sourceFile struct {
	path   string // slash-separated, from the module's root
	folder string // of path; "." for the root
	test   bool
	ast    *ast.File
	lines  int
}

// imports gives the paths that the file imports.
func (f sourceFile) imports() []string {
	paths := make([]string, 0, len(f.ast.Imports))
	for _, spec := range f.ast.Imports {
		if text, err := strconv.Unquote(spec.Path.Value); err == nil {
			paths = append(paths, text)
		}
	}
	return paths
}

// source is the parsed module.
type source struct {
	root  string
	files []sourceFile
	fset  *token.FileSet
}

// check runs a law over the module.
func check(t *testing.T, law func(s *source) []string) {
	t.Helper()
	for _, violation := range law(load(t)) {
		t.Error(violation)
	}
}

// line gives a position as "file:line" from the module's root.
func (s *source) line(f sourceFile, pos token.Pos) string {
	return f.path + ":" + strconv.Itoa(s.fset.Position(pos).Line)
}

var readSource = sync.OnceValues(parseModule)

// load gives the parsed module; every test that calls it opens every file, which is what the test cache wants.
func load(t *testing.T) *source {
	t.Helper()
	s, err := readSource()
	if err != nil {
		t.Fatal(err)
	}
	if len(s.files) < 20 {
		t.Fatalf("only %d Go files found under %s: the walk is broken", len(s.files), s.root)
	}
	return s
}

func parseModule() (*source, error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	s := &source{root: root, fset: token.NewFileSet()}
	err = filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			return skipFolder(root, name, entry)
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		return s.add(name)
	})
	return s, err
}

// skipFolder leaves out what is not this module's source: hidden folders, test data and modules of their own.
func skipFolder(root, name string, entry fs.DirEntry) error {
	if name == root {
		return nil
	}
	base := entry.Name()
	if strings.HasPrefix(base, ".") || base == "testdata" || base == "node_modules" {
		return filepath.SkipDir
	}
	if _, err := os.Stat(filepath.Join(name, "go.mod")); err == nil {
		return filepath.SkipDir
	}
	return nil
}

func (s *source) add(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	relative, err := filepath.Rel(s.root, name)
	if err != nil {
		return err
	}
	return s.addText(filepath.ToSlash(relative), text)
}

func (s *source) addText(relative string, text []byte) error {
	parsed, err := parser.ParseFile(s.fset, relative, text, parser.ParseComments)
	if err != nil {
		return err
	}
	s.files = append(s.files, sourceFile{
		path: relative, folder: path.Dir(relative), test: strings.HasSuffix(relative, "_test.go"),
		ast: parsed, lines: strings.Count(string(text), "\n"),
	})
	return nil
}

// moduleRoot walks up from the test's folder to go.mod.
func moduleRoot() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.mod")); err == nil {
			return folder, nil
		}
		parent := filepath.Dir(folder)
		if parent == folder {
			return "", os.ErrNotExist
		}
		folder = parent
	}
}
