package config

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"skep/host/internal/pathcheck"
)

const (
	envPrefix  = "env::"
	filePrefix = "file::"

	// maxReferenced is the largest file that file:: reads.
	maxReferenced = 1 << 20
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// value is one string of the file after env:: and file:: are resolved.
type value struct {
	location
	text  string
	shown string // how a message names it; never what env:: or file:: gave
	ref   bool   // it came from env:: or file::
}

// suggest returns a correction of the value, unless that would show what env::
// or file:: gave.
func (v value) suggest(correction string) string {
	if v.ref {
		return ""
	}
	return correction
}

// resolve follows a reference. The second result is false when that was
// impossible, which it has then reported.
func (d *decoder) resolve(sp location, raw string) (value, bool) {
	v := value{location: sp, text: raw, shown: strconv.Quote(raw)}
	if d.remote != nil && d.remote.literal {
		return v, true
	}
	var err error
	if name, ok := strings.CutPrefix(raw, envPrefix); ok {
		v.ref, v.shown = true, "the value of "+raw
		v.text, err = d.lookup(name)
	} else if path, ok := strings.CutPrefix(raw, filePrefix); ok {
		v.ref, v.shown = true, "the content of "+raw
		v.text, err = d.readFile(path)
		d.refer(d.path(path), true)
		// Editors end a file with a newline; a key or an address has none.
		v.text = strings.TrimSuffix(strings.TrimSuffix(v.text, "\n"), "\r")
	}
	if err != nil {
		f := d.atValue(sp, err.Error())
		if f != nil {
			f.LacksVariable = errors.Is(err, errNotSet)
		}
		f.suggestFile(err, filePrefix, strings.TrimPrefix(raw, filePrefix))
		return v, false
	}
	return v, true
}

// errRemote refuses references where they would reach what is the host's.
var errRemote = errors.New("env:: and file:: are the operator's; write the text itself")

// errNotSet ends the message about a variable that the environment lacks.
var errNotSet = errors.New("is not set")

func (d *decoder) lookup(name string) (string, error) {
	if d.remote != nil {
		return "", errRemote
	}
	if !envName.MatchString(name) {
		return "", fmt.Errorf("%q is not the name of an environment variable", name)
	}
	if d.opt.Env != nil {
		if text, ok := d.opt.Env(name); ok {
			return text, nil
		}
	}
	return "", fmt.Errorf("the environment variable %s %w", name, errNotSet)
}

// path makes a path of the file relative to the file.
func (d *decoder) path(p string) string {
	if filepath.IsAbs(p) {
		return filepath.Clean(p)
	}
	return filepath.Join(d.dir, filepath.FromSlash(p))
}

func (d *decoder) readFile(path string) (string, error) {
	if d.remote != nil {
		return "", errRemote
	}
	if path == "" {
		return "", errors.New("file:: needs a path, as in \"file::prompts/system.md\"")
	}
	full := d.path(path)
	if err := isFile(full); err != nil {
		return "", fmt.Errorf("file %q %w", path, err)
	}
	f, err := pathcheck.OpenRegular(full)
	if err != nil {
		return "", fmt.Errorf("file %q cannot be read: %w", path, reason(err))
	}
	defer func() { _ = f.Close() }()
	text, err := io.ReadAll(io.LimitReader(f, maxReferenced+1))
	switch {
	case err != nil:
		return "", fmt.Errorf("file %q cannot be read: %w", path, reason(err))
	case len(text) > maxReferenced:
		return "", fmt.Errorf("file %q has more than %d bytes", path, maxReferenced)
	case !utf8.Valid(text):
		return "", fmt.Errorf("file %q is not UTF-8 text", path)
	}
	return string(text), nil
}

// reason drops the full path, which the message already names as it is written.
func reason(err error) error {
	var pathErr *fs.PathError
	if errors.As(err, &pathErr) {
		return pathErr.Err
	}
	return err
}
