package laws

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// emptyWords name nothing: a file called util holds what nobody found a place for.
var emptyWords = []string{
	"util", "utils", "common", "helper", "helpers", "manager", "managers", "base", "impl", "misc", "stuff", "models", "types",
}

// emptyTypeWords are those of them that a type's name must not have either.
var emptyTypeWords = []string{"util", "utils", "helper", "helpers", "manager", "impl", "misc", "stuff"}

var wordsOfName = regexp.MustCompile(`[A-Z]+[a-z0-9]*|[a-z0-9]+`)

func TestLaw_NamesMeanSomething(t *testing.T) { check(t, emptyNames) }

func emptyNames(s *source) (out []string) {
	for _, f := range s.files {
		for _, word := range strings.FieldsFunc(strings.TrimSuffix(path.Base(f.path), ".go"), func(r rune) bool { return r == '_' || r == '.' }) {
			if slices.Contains(emptyWords, word) && !slices.Contains(emptyButClear, f.path) {
				out = append(out, fmt.Sprintf("%s: %q names nothing; name the file for the noun or operation in it", f.path, word))
			}
		}
		if slices.Contains(emptyWords, f.ast.Name.Name) {
			out = append(out, fmt.Sprintf("%s: package %q names nothing; name it for what it gives", f.path, f.ast.Name.Name))
		}
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			for _, word := range wordsOfName.FindAllString(spec.Name.Name, -1) {
				if slices.Contains(emptyTypeWords, strings.ToLower(word)) {
					out = append(out, fmt.Sprintf("%s: type %s: %q names nothing; what does it hold or do?", s.line(f, n.Pos()), spec.Name.Name, word))
				}
			}
			return true
		})
	}
	return out
}

// emptyButClear are files whose name has such a word in a sense of its own. Only to shrink.
var emptyButClear = []string{
	"catalog/commit/types.go",       // 2026-11: Iceberg's types are its noun
	"cmd/catalogd/setting_types.go", // 2026-11: the types that a setting can have
}

func TestLaw_PackagesSayWhatTheyAre(t *testing.T) { check(t, undocumentedPackages) }

func undocumentedPackages(s *source) (out []string) {
	documented := map[string]bool{}
	for _, f := range s.files {
		if f.test {
			continue
		}
		text := f.ast.Doc.Text()
		documented[f.folder] = documented[f.folder] || strings.HasPrefix(text, "Package ") || strings.HasPrefix(text, "Command ")
	}
	for folder, ok := range documented {
		if !ok {
			out = append(out, fmt.Sprintf("%s: no file has a comment that begins with \"Package %s\" (or Command): what is it for, and what is it not?",
				folder, path.Base(folder)))
		}
	}
	return out
}

func TestLaw_ExportedThingsSayTheirContract(t *testing.T) { check(t, undocumentedThings) }

func undocumentedThings(s *source) (out []string) {
	for _, f := range s.files {
		if f.test || f.ast.Name.Name == "main" {
			continue
		}
		for _, decl := range f.ast.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Name.IsExported() && exportedReceiver(d) && d.Doc == nil {
					out = append(out, fmt.Sprintf("%s: %s has no comment: shape, units, errors?", s.line(f, d.Pos()), d.Name.Name))
				}
			case *ast.GenDecl:
				if d.Tok == token.TYPE {
					out = append(out, undocumentedTypes(s, f, d)...)
				}
			}
		}
	}
	return out
}

func undocumentedTypes(s *source, f sourceFile, d *ast.GenDecl) (out []string) {
	for _, spec := range d.Specs {
		if ts := spec.(*ast.TypeSpec); ts.Name.IsExported() && ts.Doc == nil && d.Doc == nil {
			out = append(out, fmt.Sprintf("%s: type %s has no comment: what is it, in which units?", s.line(f, ts.Pos()), ts.Name.Name))
		}
	}
	return out
}

func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name, ok := receiver.(*ast.Ident)
	return ok && name.IsExported()
}
