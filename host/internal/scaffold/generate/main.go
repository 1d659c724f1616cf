// Command generate copies the sources of the SDKs to where package scaffold embeds
// them: one archive for each language, in the directory it is given.
package main

import (
	"fmt"
	"os"
	"path/filepath"

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
		return fmt.Errorf("usage: generate ROOT DIR")
	}
	for _, language := range source.Languages() {
		archive, err := source.Archive(args[0], language)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(args[1], language+".txtar"), archive, 0o644); err != nil {
			return err
		}
	}
	return nil
}
