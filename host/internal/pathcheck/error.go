package pathcheck

import (
	"fmt"
	"io/fs"
	"strings"
)

// Error: others could replace what lies at a path.
type Error struct {
	Path string // as it was asked for
	Weak []Weak // where they could, from the root down; never empty
}

// Weak is one place that lets others in.
type Weak struct {
	Path  string
	Mode  fs.FileMode // with the sticky bit
	Owner int         // the user's number
	// Open: others may write to it. Foreign: it belongs to another user.
	Open, Foreign bool
}

// Error names the first place, and what mends it and all the others.
func (e *Error) Error() string {
	text := fmt.Sprintf("others could replace %s: %s", e.Path, e.Weak[0])
	if more := len(e.Weak) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text + "; " + e.advice()
}

// String returns what is wrong with a place.
func (w Weak) String() string {
	if w.Foreign {
		return fmt.Sprintf("%s belongs to user %d", w.Path, w.Owner)
	}
	return fmt.Sprintf("%s has mode %#o", w.Path, octal(w.Mode))
}

// advice is what to do. What belongs to a stranger, or to all, is left alone.
func (e *Error) advice() string {
	command := "chmod go-w"
	for _, w := range e.Weak {
		switch {
		case w.Foreign:
			return fmt.Sprintf("run skep as user %d, or keep a copy in a directory of your own", w.Owner)
		case w.Mode&fs.ModeSticky != 0:
			return "choose a directory of your own"
		}
		command += " " + Quote(w.Path)
	}
	return "run " + command
}

// Quote writes a path for a shell.
func Quote(path string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("/._-+@:,=", r)
	}
	if strings.TrimFunc(path, plain) == "" {
		return path
	}
	return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'"
}

// octal gives a mode in the numbers of chmod.
func octal(m fs.FileMode) uint32 {
	n := uint32(m.Perm())
	if m&fs.ModeSticky != 0 {
		n |= 0o1000
	}
	return n
}

// Dir judges a directory that skep keeps for itself: it returns an *Error if
// others could replace it or put anything into it, a private group included. Of
// one that does not exist it judges those that do.
func Dir(path string) error { return current().dir(path) }

func (u user) dir(path string) error {
	w, err := u.walk(path)
	if err != nil {
		return err
	}
	if w.file == "" && !w.missing {
		w.last().own = true // what is put beside ours may be taken for it
	}
	return w.verdict(path)
}
