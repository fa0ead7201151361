package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"catalogd/internal/fault"
	"catalogd/internal/spelling"
)

// command is a row of the command table: it runs, or it has verbs that do.
type command struct {
	name      string
	arguments string // of a usage line, for example "NS.TABLE"
	summary   string
	run       func(ctx context.Context, c *call) error
	verbs     []*command
}

// call is one run of the program. Tests make their own.
type call struct {
	Args     []string
	Environ  []string
	Out, Err io.Writer
	Terminal bool // Out is a terminal: secrets may be shown
	Name     string

	command *command
	// about are the settings that the command's help shows, of those that it reads; nil: all.
	about []string
}

// usageError is a wrong command line: exit code 2.
type usageError struct{ text string }

func (e *usageError) Error() string { return e.text }

func wrongUsage(format string, args ...any) error { return &usageError{fmt.Sprintf(format, args...)} }

// errShown ends a command whose answer has been printed already: help, or a job that was refused.
var (
	errHelpShown   = errors.New("help was shown")
	errFailedShown = errors.New("the failure was shown")
)

// run finds the command, runs it and turns its error into a message and an exit code.
func run(ctx context.Context, c *call) int {
	c.Name = "catalogd"
	err := dispatch(ctx, c, commands)
	var usage *usageError
	switch {
	case err == nil, errors.Is(err, errHelpShown):
		return exitOK
	case errors.Is(err, errFailedShown):
		return exitFailed
	case errors.As(err, &usage):
		fmt.Fprintf(c.Err, "%s: %s\n", c.Name, usage.text)
		fmt.Fprintf(c.Err, "`%s --help` shows how it is used\n", c.Name)
		return exitUsage
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		fmt.Fprintf(c.Err, "%s: interrupted\n", c.Name)
		return exitFailed
	default:
		fmt.Fprintf(c.Err, "%s: %s\n", c.Name, explain(err))
		return exitFailed
	}
}

// explain gives an error's whole text: whoever runs a command is the operator, so causes are shown too.
func explain(err error) string {
	var known *fault.Error
	if errors.As(err, &known) && known.Cause == nil {
		return err.Error()
	}
	return strings.ReplaceAll(err.Error(), "\n", "\n  ")
}

func dispatch(ctx context.Context, c *call, table []*command) error {
	if len(c.Args) == 0 {
		printTable(c.Err, c.Name, table)
		return wrongUsage("a command is missing")
	}
	first := c.Args[0]
	if first == "help" && len(c.Args) > 1 { // help for what is named behind it
		c.Args = append(slices.Clone(c.Args[1:]), "--help")
		first = c.Args[0]
	}
	if first == "--help" || first == "-h" || first == "-help" || first == "help" {
		printTable(c.Out, c.Name, table)
		return errHelpShown
	}
	if first == "--version" && c.Name == "catalogd" {
		first = "version"
	}
	i := slices.IndexFunc(table, func(k *command) bool { return k.name == first })
	if i < 0 {
		names := make([]string, 0, len(table))
		for _, k := range table {
			names = append(names, k.name)
		}
		if near := spelling.Nearest(first, names); near != "" {
			return wrongUsage("there is no command %q; did you mean %s?", first, near)
		}
		return wrongUsage("there is no command %q", first)
	}
	c.Args, c.Name, c.command = c.Args[1:], c.Name+" "+first, table[i]
	if table[i].verbs != nil {
		return dispatch(ctx, c, table[i].verbs)
	}
	return table[i].run(ctx, c)
}

func printTable(w io.Writer, name string, table []*command) {
	fmt.Fprintf(w, "usage: %s COMMAND [--help] …\n\n", name)
	for _, k := range table {
		fmt.Fprintf(w, "  %-15s %s\n", k.name, k.summary)
	}
}

// newFlags makes an empty set of flags for the command.
func (c *call) newFlags() *flag.FlagSet {
	fs := flag.NewFlagSet(c.Name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

// parse reads flags and arguments in any order and gives the arguments. Everything behind -- is an argument.
func (c *call) parse(fs *flag.FlagSet, argumentsMin, argumentsMax int) ([]string, error) {
	args, rest := c.Args, []string(nil)
	if i := slices.Index(args, "--"); i >= 0 {
		args, rest = args[:i], args[i+1:]
	}
	var positional []string
	for {
		if err := fs.Parse(args); errors.Is(err, flag.ErrHelp) {
			c.printHelp(fs)
			return nil, errHelpShown
		} else if err != nil {
			return nil, wrongUsage("%s", flagProblem(fs, err))
		}
		if fs.NArg() == 0 {
			break
		}
		positional, args = append(positional, fs.Arg(0)), fs.Args()[1:]
	}
	positional = append(positional, rest...)
	switch {
	case len(positional) < argumentsMin:
		return nil, wrongUsage("missing: %s", c.command.arguments)
	case len(positional) > argumentsMax:
		return nil, wrongUsage("unexpected argument %q", positional[argumentsMax])
	}
	return positional, nil
}

// flagProblem says what is wrong with a flag, spelled as help spells flags, and which one was probably meant.
func flagProblem(fs *flag.FlagSet, err error) string {
	name, unknown := strings.CutPrefix(err.Error(), "flag provided but not defined: -")
	if !unknown {
		return strings.Replace(err.Error(), ": -", ": --", 1)
	}
	var names []string
	fs.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
	if near := spelling.Nearest(name, names); near != "" {
		return fmt.Sprintf("there is no flag %s; did you mean %s?", dashed(name), dashed(near))
	}
	return "there is no flag " + dashed(name)
}

// dashed spells a flag's name.
func dashed(name string) string {
	if len(name) == 1 {
		return "-" + name
	}
	return "--" + name
}

func (c *call) printHelp(fs *flag.FlagSet) {
	fmt.Fprintf(c.Out, "%s: %s\n\nusage: %s", c.Name, c.command.summary, c.Name)
	if hasFlags(fs) {
		fmt.Fprint(c.Out, " [flags]")
	}
	if c.command.arguments != "" {
		fmt.Fprint(c.Out, " ", c.command.arguments)
	}
	fmt.Fprintln(c.Out)
	if hasFlags(fs) {
		fmt.Fprintln(c.Out)
	}
	hidden := c.hiddenFlags()
	fs.VisitAll(func(f *flag.Flag) {
		if slices.Contains(hidden, f.Name) {
			return
		}
		kind, help := flag.UnquoteUsage(f)
		line := strings.TrimRight("  "+dashed(f.Name)+" "+strings.ToUpper(kind), " ")
		if f.DefValue != "" && f.DefValue != "false" && f.DefValue != "0" {
			help += " (default " + f.DefValue + ")"
		}
		fmt.Fprintf(c.Out, "%s\n        %s\n", line, help)
	})
	if len(hidden) > 0 {
		fmt.Fprintln(c.Out, "\nThe other settings of `catalogd serve` are read too, and change nothing here.")
	}
}

// hiddenFlags are those of settings that the command has nothing to do with.
func (c *call) hiddenFlags() []string {
	var hidden []string
	for _, s := range settings {
		if c.about != nil && !slices.Contains(c.about, s.key) {
			hidden = append(hidden, flagName(s.key))
		}
	}
	return hidden
}

func hasFlags(fs *flag.FlagSet) bool {
	has := false
	fs.VisitAll(func(*flag.Flag) { has = true })
	return has
}

// lookup gives a variable of the call's environment.
func (c *call) lookup(name string) string {
	for _, entry := range slices.Backward(c.Environ) {
		if value, found := strings.CutPrefix(entry, name+"="); found {
			return value
		}
	}
	return ""
}

// configured reads the flags of a command that has no arguments, and its configuration. more adds flags of its own.
func (c *call) configured(more ...func(*flag.FlagSet)) (Config, error) {
	fs := c.newFlags()
	load := c.configFlags(fs)
	for _, add := range more {
		add(fs)
	}
	if _, err := c.parse(fs, 0, 0); err != nil {
		return Config{}, err
	}
	return load()
}

// configFlags adds a flag for each of the keys to fs and gives the function that loads the configuration after
// fs was parsed.
func (c *call) configFlags(fs *flag.FlagSet) func() (Config, error) {
	given := map[string]string{}
	path := fs.String("config", "", "configuration `file` in YAML (default: the variable CATALOGD_CONFIG, else none)")
	defaults := defaultConfig()
	for _, s := range settings {
		take := func(value string) error { given[s.key] = value; return nil }
		if s.toggle {
			fs.BoolFunc(flagName(s.key), s.help, take)
		} else {
			fs.Func(flagName(s.key), s.help, take)
		}
		if !s.secret && !s.document {
			fs.Lookup(flagName(s.key)).DefValue = s.show(&defaults)
		}
	}
	return func() (Config, error) {
		in := inputs{environ: c.Environ, flags: given, fileName: *path}
		if in.fileName == "" {
			in.fileName = c.lookup("CATALOGD_CONFIG")
		}
		if in.fileName != "" {
			body, err := os.ReadFile(in.fileName)
			if err != nil {
				return Config{}, fmt.Errorf("configuration file: %w", err)
			}
			in.file = append([]byte{}, body...)
		}
		return loadConfig(in)
	}
}

// stringList is a flag that may be given several times.
type stringList []string

func (l *stringList) String() string { return strings.Join(*l, ",") }

// Set adds one value.
func (l *stringList) Set(value string) error { *l = append(*l, value); return nil }
