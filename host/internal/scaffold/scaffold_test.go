package scaffold

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"skep/host/internal/guests"
	"skep/host/internal/scaffold/source"
)

// The sources that the program carries are the tree's.
func TestSDKSources(t *testing.T) {
	t.Parallel()
	for _, language := range Languages() {
		want, err := source.Files(os.DirFS(filepath.Join(guests.Root(), "sdk")), language)
		if err != nil {
			t.Fatal(err)
		}
		got, err := sdkFiles(language)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(txtar.Format(&txtar.Archive{Files: got}), txtar.Format(&txtar.Archive{Files: want})) {
			t.Errorf("%s: the SDK has changed: run go generate ./host/internal/scaffold", language)
		}
	}
}

func TestWriteRefuses(t *testing.T) {
	t.Parallel()
	used := t.TempDir()
	if err := os.WriteFile(filepath.Join(used, "mine"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		agent Agent
		want  error
	}{
		{Agent{Name: "", Language: "go"}, ErrName},
		{Agent{Name: "Big", Language: "go"}, ErrName},
		{Agent{Name: "a/b", Language: "go"}, ErrName},
		{Agent{Name: "..", Language: "go"}, ErrName},
		{Agent{Name: "ü", Language: "go"}, ErrName},
		{Agent{Name: strings.Repeat("a", 64), Language: "go"}, ErrName},
		{Agent{Name: "a", Language: "cobol"}, ErrLanguage},
		{Agent{Name: "a", Language: "../sdk/c"}, ErrLanguage},
		{Agent{Name: "a", Language: "c", Dir: used}, ErrExists},
	}
	for _, tt := range tests {
		if tt.agent.Dir == "" {
			tt.agent.Dir = filepath.Join(t.TempDir(), "new")
		}
		if _, err := tt.agent.Write(); !errors.Is(err, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.agent, err, tt.want)
		}
	}
	if left, err := os.ReadDir(used); err != nil || len(left) != 1 {
		t.Errorf("a directory in use has %v, %v", left, err)
	}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	for _, language := range Languages() {
		t.Run(language, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "deep", "bee-1")
			files, err := Agent{Name: "bee-1", Language: language, Dir: dir, Program: "/bees' $1 #2/skep"}.Write()
			if err != nil {
				t.Fatal(err)
			}
			rules, err := os.ReadFile(filepath.Join(dir, "Makefile"))
			if value := `?= /bees'\'' $$1 \#2/skep`; err != nil || !strings.Contains(string(rules), value+"\n") {
				t.Errorf("no %s in %s, %v", value, rules, err)
			}
			for _, name := range []string{"README.md", "swarm.toml", "Makefile", ".gitignore"} {
				if !slices.Contains(files, name) {
					t.Errorf("no %s among %v", name, files)
				}
			}
			for _, name := range files {
				text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(name)))
				if err != nil || len(text) == 0 || strings.Contains(string(text), "@NAME@") || strings.Contains(string(text), "@SKEP@") || strings.Contains(string(text), "skep/sdk/go") {
					t.Errorf("%s: %d bytes, %v", name, len(text), err)
				}
			}
		})
	}
}

// A Go project passes its own test and builds, whatever its name, without network.
func TestGoProjectBuilds(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("compiles Go")
	}
	for _, name := range []string{"bee", "time", "test", "a-b_c", "std", "internal", "skep", "main", "vendor"} {
		dir := t.TempDir()
		if _, err := (Agent{Name: name, Language: "go", Dir: dir}).Write(); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command("go", "vet", "./...")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOPROXY=off", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}
