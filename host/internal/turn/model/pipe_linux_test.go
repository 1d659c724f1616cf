package model_test

import (
	"strings"
	"syscall"
	"testing"

	"skep/host/internal/turn/model"
)

// TestPipes: a pipe in the place of a cassette is not waited for.
func TestPipes(t *testing.T) {
	for _, name := range []string{"rules.toml", "tape.jsonl"} {
		path := temp(t, name)
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := model.Open(model.Spec{Name: "m", Provider: model.Script, Cassette: path}, model.Options{}); err == nil || !strings.Contains(err.Error(), name+" is not a file") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
