package cli

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"skep/host/internal/gateway/acp/gen"
	"skep/host/internal/pathcheck"
)

const acpCompileHelp = `Compile writes the types of FILE in a language, with code that reads messages from
JSON, writes them, and says why one is not valid. The code needs nothing but its
language; the same FILE gives the same bytes, so it can be kept in version control.
All languages refuse the same messages for the same reasons.

  go          messages.go and three more files   Go 1.23
  scala       Messages.scala                     Scala 2.11
  typescript  messages.ts                        ES2022
  python      messages.py                        Python 3.11
  java        Messages.java                      Java 17
  rust        messages.rs                        Rust 1.63
  jsonschema  NAME.schema.json                   JSON Schema 2020-12
  proto       NAME.proto                         proto3; the numbers of its fields are kept in
                                                 FILE.lock beside FILE: keep that file, too

FILE may be -, which is stdin, but for proto. -o is the directory here, not the format;
SKEP_OUTPUT=json prints the names of the files as JSON. Files of an earlier run are
replaced, others are left alone.

Exit codes: 2 the language or an option is none; 3 FILE has faults, each shown with its
line; 4 it is not there; 5 a file in DIR that was not made by compile has the name.`

func (a *app) acpCompileCommand() *cobra.Command {
	var language, dir, name string
	var opt gen.Options
	cmd := &cobra.Command{
		Use: "compile FILE", Short: "Write the types of a .acp file in a language", Args: exactArguments("the FILE of declarations"),
		Long:    acpCompileHelp,
		Example: "  skep acp compile mail.acp --lang go -o messages\n  skep acp compile mail.acp --lang jsonschema -o .",
	}
	cmd.Flags().StringVar(&language, "lang", "", "the `LANGUAGE`: "+strings.Join(gen.Languages(), ", "))
	ownOutput(cmd.Flags(), &dir, "the `DIR` to write to")
	cmd.Flags().StringVar(&opt.Package, "package", "", "the `NAME` of the package, for "+strings.Join(gen.Packaged(), ", ")+" (default messages)")
	cmd.Flags().StringVar(&name, "type", "", "the `RECORD` that a message is (default Message, else the last one)")
	cmd.RunE = a.command(func(cmd *cobra.Command, args []string) (err error) {
		if err := checkLanguage(language, args[0]); err != nil {
			return err
		}
		s, err := a.declarations(cmd.Context(), args[0])
		if err != nil {
			return a.refuseDeclarations(args[0], err)
		}
		if len(s.Types) == 0 {
			return failf(exitConfig, "%s declares no type, so there is nothing to write", args[0])
		}
		if opt.Root, err = rootOf(s, args[0], name); err != nil {
			return err
		}
		if opt.Lock, err = readLock(language, args[0]); err != nil {
			return err
		}
		files, err := gen.Generate(language, s, opt)
		if errors.Is(err, gen.ErrOption) {
			return usagef("%w", err)
		}
		if err != nil {
			return a.refuseDeclarations(args[0], placedIn(filepath.Dir(args[0]), err))
		}
		a.noteFaults(s.Warnings, "warning: ")
		return a.writeGenerated(args[0], language, dir, files, opt.Lock)
	})
	return cmd
}

// otherNames are what languages are called elsewhere.
var otherNames = map[string]string{
	"golang": "go", "ts": "typescript", "js": "typescript", "javascript": "typescript", "node": "typescript", "py": "python", "python3": "python",
	"jvm": "java", "rs": "rust", "json-schema": "jsonschema", "json": "jsonschema", "schema": "jsonschema", "proto3": "proto", "protobuf": "proto",
}

// checkLanguage refuses a language that there is not, and one that needs a file.
func checkLanguage(language, file string) error {
	all := strings.Join(gen.Languages(), ", ")
	switch {
	case language == "":
		return usagef("acp compile needs --lang").help("languages are %s", all)
	case language == proto && file == stdin:
		return usagef("--lang proto needs a FILE: the numbers of fields are kept in FILE.lock")
	case slices.Contains(gen.Languages(), language):
		return nil
	}
	f := usagef("no language is called %q; there are %s", language, all)
	if known := otherNames[strings.ToLower(language)]; known != "" {
		return f.help("did you mean %s?", known)
	}
	return withNearest(f, language, gen.Languages())
}

// proto is the language that has a lock.
const proto = "proto"

// readLock reads the numbers that fields of a proto file have.
func readLock(language, declarations string) (*gen.Lock, error) {
	if language != proto {
		return gen.NewLock(), nil
	}
	file := declarations + ".lock"
	f, err := pathcheck.OpenRegular(file)
	if errors.Is(err, fs.ErrNotExist) {
		return gen.NewLock(), nil
	}
	if err != nil {
		return nil, unusableFile(file, "read", err)
	}
	defer func() { _ = f.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, gen.MaxLock+1))
	if err != nil {
		return nil, unusableFile(file, "read", err)
	}
	lock, err := gen.ParseLock(file, string(text))
	if err != nil {
		return nil, failf(exitConfig, "%w", err)
	}
	return lock, nil
}

// checkReplaced refuses to replace what was not generated.
func checkReplaced(path string) error {
	f, err := pathcheck.OpenRegular(path)
	var unfit *pathcheck.UnfitError
	if errors.As(err, &unfit) {
		return failf(exitRefused, "%s is there already: %w", path, err).help("move it, or name another directory with -o")
	}
	if err != nil {
		return nil // there is none, or the error of writing it says more
	}
	defer func() { _ = f.Close() }() // nothing was written
	head, err := io.ReadAll(io.LimitReader(f, 1<<10))
	if err != nil {
		return unusableFile(path, "written", err)
	}
	if len(head) > 0 && !strings.Contains(string(head), gen.Header) {
		return failf(exitRefused, "%s is there already and was not made by acp compile", path).help("move it, or name another directory with -o")
	}
	return nil
}

// writeGenerated writes the lock before the file that depends on it: a number that was
// kept and not used does no harm.
func (a *app) writeGenerated(file, language, dir string, files []gen.File, lock *gen.Lock) error {
	if dir == "" {
		return usagef("-o is the directory to write to, and empty; this one is called .")
	}
	if info, err := os.Stat(dir); err == nil && !info.IsDir() {
		return usagef("%s is a file: -o is the directory to write to", dir)
	}
	for _, f := range files {
		if err := checkReplaced(filepath.Join(dir, f.Name)); err != nil {
			return err
		}
	}
	if language == proto {
		if err := rewriteFile(file+".lock", []byte(lock.String())); err != nil {
			return unusableFile(file+".lock", "written", err)
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return unusableFile(dir, "made", err)
	}
	written := []string{}
	for _, f := range files {
		path := filepath.Join(dir, f.Name)
		if err := replaceFile(path, []byte(f.Text)); err != nil {
			return unusableFile(path, "written", err)
		}
		written = append(written, path)
	}
	if a.json() {
		return a.printJSON(map[string]any{"file": file, "language": language, "written": written})
	}
	for _, path := range written {
		if err := a.printf("%s\n", path); err != nil {
			return err
		}
	}
	return nil
}
