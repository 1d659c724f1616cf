// Command generate writes the Go SDK's sources as a txtar archive for package
// scaffold to embed. Its arguments are the directory sdk and the archive.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/rogpeppe/go-internal/txtar"

	"skep/host/internal/scaffold/source"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if len(args) != 2 {
		return errors.New("usage: generate SDK ARCHIVE")
	}
	files, err := source.Files(os.DirFS(args[0]), "go")
	if err != nil {
		return err
	}
	return os.WriteFile(args[1], txtar.Format(&txtar.Archive{Files: files}), 0o644)
}
