package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"

	"catalogd/api/manage"
	"catalogd/catalog"
)

// documents are the files whose commands and links people follow.
func documents(t *testing.T) map[string]string {
	t.Helper()
	paths, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for _, path := range append(paths, "../../README.md") {
		body, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		texts[path] = string(body)
	}
	return texts
}

// TestDocs_EverySettingIsDescribed holds the table of operations.md against the table of settings, defaults included.
func TestDocs_EverySettingIsDescribed(t *testing.T) {
	operations := documents(t)["../../docs/operations.md"]
	defaults := defaultConfig()
	rows := regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| `(CATALOGD_[A-Z_]+)` \\|([^|]*)\\|").FindAllStringSubmatch(operations, -1)
	described := map[string]bool{}
	for _, row := range rows {
		key, variable, value := row[1], row[2], strings.Trim(row[3], "` ")
		s, known := settingOf(key)
		if !known {
			t.Errorf("operations.md describes %s, which is no setting", key)
			continue
		}
		described[key] = true
		if variable != envName(key) {
			t.Errorf("%s: the variable is %s, not %s", key, envName(key), variable)
		}
		if want := s.show(&defaults); want != "" && value != want {
			t.Errorf("%s: the default is %s, not %s", key, want, value)
		}
	}
	for _, s := range settings {
		if !described[s.key] {
			t.Errorf("operations.md does not describe %s", s.key)
		}
	}
}

// TestDocs_LimitsExist looks for the name of each limit in the source of its package.
func TestDocs_LimitsExist(t *testing.T) {
	_, section, _ := strings.Cut(documents(t)["../../docs/operations.md"], "\n## Limits\n")
	section, _, _ = strings.Cut(section, "\n## ")
	names := regexp.MustCompile("`([a-z/]+)\\.([a-zA-Z]+)`").FindAllStringSubmatch(section, -1)
	if len(names) < 25 {
		t.Fatalf("only %d limits are named", len(names))
	}
	for _, name := range names {
		files, err := filepath.Glob("../../" + name[1] + "/*.go")
		if err != nil {
			t.Fatal(err)
		}
		declared := regexp.MustCompile("(?m)^(\t|const )" + name[2] + "\\s+=")
		found := false
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			found = found || declared.Match(text)
		}
		if !found {
			t.Errorf("%s.%s is a limit in operations.md and nowhere else", name[1], name[2])
		}
	}
}

// TestDocs_CommandsAreAccepted takes each line of a code block that runs catalogd and asks the program for help on
// it: a flag or command that does not exist is refused.
func TestDocs_CommandsAreAccepted(t *testing.T) {
	line := regexp.MustCompile(`(?m)^(?:bin/)?catalogd ([^#\n]*)`)
	seen := 0
	for path, text := range documents(t) {
		for i, block := range strings.Split(text, "```") {
			if i%2 == 0 {
				continue
			}
			for _, match := range line.FindAllStringSubmatch(block, -1) {
				seen++
				var errs strings.Builder
				args := append(strings.Fields(match[1]), "--help")
				if code := run(t.Context(), &call{Args: args, Out: &strings.Builder{}, Err: &errs}); code != exitOK {
					t.Errorf("%s: `catalogd %s` is refused: %s", path, strings.TrimSpace(match[1]), errs.String())
				}
			}
		}
	}
	if seen < 8 {
		t.Errorf("only %d commands were found: does the expression still fit?", seen)
	}
}

// TestDocs_TargetsAndLinksExist: `make x` is a target, and a link to a file leads somewhere.
func TestDocs_TargetsAndLinksExist(t *testing.T) {
	makefile, err := os.ReadFile("../../Makefile")
	if err != nil {
		t.Fatal(err)
	}
	target := regexp.MustCompile("(?m)(?:`|^)make ([a-z]+)")
	link := regexp.MustCompile(`\]\(([^)#:]+)\)`)
	for path, text := range documents(t) {
		for _, match := range target.FindAllStringSubmatch(text, -1) {
			if !regexp.MustCompile(`(?m)^([a-z -]*\b` + match[1] + `\b[a-z -]*:|CLIENTS := .*\b` + match[1] + `\b)`).Match(makefile) {
				t.Errorf("%s: there is no target `make %s`", path, match[1])
			}
		}
		for _, match := range link.FindAllStringSubmatch(text, -1) {
			if _, err := os.Stat(filepath.Join(filepath.Dir(path), match[1])); err != nil {
				t.Errorf("%s: the link to %s leads nowhere", path, match[1])
			}
		}
	}
}

// TestDocs_SampleConfigurationIsAccepted loads the file that operations.md shows.
func TestDocs_SampleConfigurationIsAccepted(t *testing.T) {
	_, after, found := strings.Cut(documents(t)["../../docs/operations.md"], "```yaml\n")
	sample, _, closed := strings.Cut(after, "```")
	if !found || !closed {
		t.Fatal("operations.md has no sample configuration any more")
	}
	config, err := loadConfig(inputs{file: []byte(sample), fileName: "catalogd.yaml"})
	if err != nil {
		t.Fatal(err)
	}
	if config.Secrets.Key == "" || config.Database.URL == "" || config.PublicURL == "" || len(config.warnings()) > 0 {
		t.Errorf("the sample leaves out what a server needs, or draws warnings: %v", config.warnings())
	}
}

// TestDocs_ExampleOfAReaderIsRun: each command of the example in security.md stands in the script that runs it.
func TestDocs_ExampleOfAReaderIsRun(t *testing.T) {
	script, err := os.ReadFile("testdata/reader.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, example, found := strings.Cut(documents(t)["../../docs/security.md"], "### A user who may only read")
	blocks := strings.Split(example, "```")
	if !found || len(blocks) < 3 {
		t.Fatal("security.md has no such example any more")
	}
	commands := regexp.MustCompile(`(?m)^catalogd [^#\n]*[^#\s]`).FindAllString(blocks[1], -1)
	if len(commands) < 6 {
		t.Fatalf("only %d commands were found", len(commands))
	}
	for _, command := range commands {
		if !strings.Contains(string(script), "\nexec "+command+"\n") {
			t.Errorf("the script does not run `%s`", command)
		}
	}
}

// TestDocs_ClientVersionsAreTheTestedOnes: what README says to install is what the install scripts install.
func TestDocs_ClientVersionsAreTheTestedOnes(t *testing.T) {
	pins := regexp.MustCompile(`(pyiceberg|duckdb)(?:-extension-[a-z]+|\[[a-z0-9,]+\])?==([0-9.]+)`).FindAllStringSubmatch(documents(t)["../../README.md"], -1)
	if len(pins) < 5 {
		t.Fatalf("README pins only %d packages", len(pins))
	}
	for _, pin := range pins {
		script, err := os.ReadFile("../../e2e/clients/" + pin[1] + "/install")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(script), "_VERSION:-"+pin[2]+"}") {
			t.Errorf("README installs %s, which is not what the tests run", pin[0])
		}
	}
}

// TestDocs_RunbookHasEveryReason: each reason code of a job is explained.
func TestDocs_RunbookHasEveryReason(t *testing.T) {
	runbook := documents(t)["../../docs/runbook.md"]
	files, err := filepath.Glob("../../maintenance/*.go")
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, code := range regexp.MustCompile(`(?m)^\s+Code[A-Z]\w+\s+= "([a-z-]+)"`).FindAllSubmatch(text, -1) {
			seen++
			if !strings.Contains(runbook, "`"+string(code[1])+"`") {
				t.Errorf("runbook.md does not say what %s means", code[1])
			}
		}
	}
	if seen < 30 {
		t.Errorf("only %d reason codes were found: does the expression still fit?", seen)
	}
}

// TestDocs_TheAuditIsExplained: each field of a row is explained in operations.md.
func TestDocs_TheAuditIsExplained(t *testing.T) {
	_, section, _ := strings.Cut(documents(t)["../../docs/operations.md"], "\n## Audit\n")
	section, _, _ = strings.Cut(section, "\n## ")
	line, err := manage.AuditLine(catalog.AuditRow{
		EventID: uuid.New(), RequestID: "r", Principal: "p", Actor: "a", TokenID: "t", Credential: "c", Client: "c", UserAgent: "u", Operation: "o",
		WarehouseID: uuid.New(), Warehouse: "w", SecurableID: uuid.New(), Subject: "s", Reason: "r", Privilege: "p", Securable: "s", Repeats: 1,
	})
	var fields map[string]any
	if err = errors.Join(err, json.Unmarshal(line, &fields)); err != nil {
		t.Fatal(err)
	}
	for name := range fields {
		if !strings.Contains(section, "`"+name+"`") && name != "catalogId" {
			t.Errorf("operations.md does not say what %s of the audit is", name)
		}
	}
	if len(fields) < 19 {
		t.Errorf("only %d fields were found", len(fields))
	}
}
