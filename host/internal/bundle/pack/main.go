// Command pack owns the compression of the bundled modules for the program to embed:
// pack FROM TO writes FROM/NAME.wasm to TO/NAME.wasm.gz. It must not know what the
// modules do.
package main

import (
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"skep/host/internal/bundle"
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: pack FROM TO")
		os.Exit(2)
	}
	if err := pack(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "pack:", err)
		os.Exit(1)
	}
}

// pack leaves unchanged files as they are, so that nothing is built again for them.
func pack(from, to string) error {
	old, err := filepath.Glob(filepath.Join(to, "*"+bundle.Suffix))
	if err != nil {
		return err
	}
	stale := map[string]bool{}
	for _, file := range old {
		stale[file] = true
	}
	files, err := filepath.Glob(filepath.Join(from, "*.wasm"))
	if err != nil {
		return err
	}
	for _, file := range files {
		target := filepath.Join(to, strings.TrimSuffix(filepath.Base(file), ".wasm")+bundle.Suffix)
		delete(stale, target)
		err = errors.Join(err, packFile(file, target))
	}
	for file := range stale {
		err = errors.Join(err, os.Remove(file))
	}
	return err
}

func packFile(file, target string) error {
	raw, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err := w.Write(raw); err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	if has, err := os.ReadFile(target); err == nil && bytes.Equal(has, b.Bytes()) {
		return nil
	}
	return os.WriteFile(target, b.Bytes(), 0o644)
}
