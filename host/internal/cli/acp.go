package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"skep/host/internal/gateway/acp/dsl"
	"skep/host/internal/spelling"
)

const acpHelp = `Messages of agents are declared in a .acp file: types, enums, records with optional
fields, and which answer a message expects.

  type AgentID = String                    // a name for a built-in type
  enum MessageType { REQUEST, RESPONSE }
  type Message = {
    header: { sender: AgentID, type: MessageType, reply_to: String? },
    body: String
  }
  semantics REQUEST expects RESPONSE { reply_to }

Built in are String, Int, Long, Float, Boolean, Bytes, List<T> and Map<String, T>;
T? may be absent. Nothing here needs a swarm or a running host.`

func (a *app) acpCommand() *cobra.Command {
	return group(&cobra.Command{
		Use: "acp", Short: "Compile, check and format declarations of messages", GroupID: groupCheck, Long: acpHelp,
	}, a.acpCompileCommand(), a.acpCheckCommand(), a.acpFmtCommand(), a.acpStdioCommand())
}

// declarations reads a .acp file and those it imports, which are beside it; stdin is in
// the working directory. Its faults have the paths that lead to the files from here.
func (a *app) declarations(ctx context.Context, file string) (*dsl.Schema, error) {
	dir := filepath.Dir(file)
	s, err := dsl.Load(filepath.Base(file), func(name string) (string, error) {
		if name == filepath.Base(file) {
			return a.declarationText(ctx, file)
		}
		root, err := os.OpenRoot(dir)
		if err != nil {
			return "", err
		}
		defer func() { _ = root.Close() }() // nothing was written
		// A pipe would hold the command up: only the file that it names may be one.
		if info, err := root.Stat(filepath.FromSlash(name)); err == nil && !info.Mode().IsRegular() {
			return "", fmt.Errorf("%s is not a regular file", name)
		}
		f, err := root.Open(filepath.FromSlash(name))
		return readDeclarations(f, err)
	})
	if err != nil {
		return nil, placedIn(dir, err)
	}
	for i := range s.Warnings {
		s.Warnings[i].File = filepath.Join(dir, s.Warnings[i].File)
	}
	if file == stdin {
		s.Name = "messages"
	}
	return s, nil
}

// stdin is what stands for standard input where a file is named.
const stdin = "-"

// declarationText reads a file of declarations, or stdin.
func (a *app) declarationText(ctx context.Context, file string) (string, error) {
	if file == stdin {
		text, err := a.readStdin(ctx, "text")
		return text + "\n", err
	}
	f, err := os.Open(file)
	return readDeclarations(f, err)
}

// placedIn gives the faults of an error the paths of their files.
func placedIn(dir string, err error) error {
	var faults dsl.Faults
	if errors.As(err, &faults) {
		for i := range faults {
			faults[i].File = filepath.Join(dir, faults[i].File)
		}
		return faults
	}
	return err
}

// readDeclarations reads a little more than a file may have: what is too long is a
// fault like others.
func readDeclarations(f *os.File, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }() // nothing was written
	text, err := io.ReadAll(io.LimitReader(f, dsl.MaxBytes+1))
	return string(text), err
}

// acpVerdict is what was found in a .acp file, and its JSON.
type acpVerdict struct {
	File     string       `json:"file"`
	Faults   dsl.Faults   `json:"faults"`
	Warnings dsl.Faults   `json:"warnings"`
	Type     string       `json:"type,omitempty"` // what a message is
	Types    int          `json:"types"`
	Messages []acpMessage `json:"messages"`
}

// acpMessage is whether one message fits.
type acpMessage struct {
	File   string `json:"file"`
	Fits   bool   `json:"fits"`
	Reason string `json:"reason,omitempty"`
}

// refuseDeclarations reports the faults of a .acp file.
func (a *app) refuseDeclarations(file string, err error) error {
	var faults dsl.Faults
	if !errors.As(err, &faults) {
		return unusableFile(file, "read", err)
	}
	if a.json() {
		v := acpVerdict{File: file, Faults: faults, Warnings: dsl.Faults{}, Messages: []acpMessage{}}
		if err := a.printJSON(v); err != nil {
			return err
		}
		return reported(exitConfig)
	}
	a.noteFaults(faults, "")
	return reported(exitConfig)
}

// maxShownFaults is how many faults a terminal is shown; JSON has all that a run reports.
const maxShownFaults = 10

func (a *app) noteFaults(faults dsl.Faults, mark string) {
	for _, f := range faults[:min(len(faults), maxShownFaults)] {
		f.Message = mark + f.Message
		a.notef("%s", printable(f.String()))
	}
	if more := len(faults) - maxShownFaults; more > 0 {
		a.notef("and at least %d more", more)
	}
}

// rootOf finds the record that a message is: the named one, or what the declarations
// mean by it.
func rootOf(s *dsl.Schema, file, name string) (*dsl.Type, error) {
	if name == "" {
		return s.Root(), nil
	}
	if t := s.Find(name); t != nil && t.Kind == dsl.Record {
		return t, nil
	}
	var records []string
	for _, t := range s.Types {
		if t.Kind == dsl.Record {
			records = append(records, t.Name)
		}
	}
	f := failf(exitNotFound, "%s declares no record %s", file, inLine(name))
	if s.Find(name) != nil {
		f = failf(exitNotFound, "%s in %s is no record, and a message is one", inLine(name), file)
	}
	if len(records) > 0 {
		f = f.help("records are %s; without --type it is %s", nameList(records), s.Root().Name)
	}
	return nil, withNearest(f, name, records)
}

// nameList lists names, not more than a line has room for.
func nameList(names []string) string {
	const shown = 8
	if more := len(names) - shown; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:shown], ", "), more)
	}
	return strings.Join(names, ", ")
}

// withNearest adds what an option of a command was probably meant to be.
func withNearest(f *failure, option string, options []string) error {
	if near := spelling.Nearest(option, options); near != "" {
		return f.help("did you mean %s?", near)
	}
	return f
}
