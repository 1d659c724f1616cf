package fileaction

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"

	"skep/abi"
)

// Limits of a path.
const (
	maxPath  = 1024 // bytes
	maxName  = 255  // bytes of one name
	maxDepth = 32   // names
)

// partPrefix begins the names of unfinished files. No action shows them.
const partPrefix = ".skep-part-"

// cleanPath checks the path of a call and normalizes it: "." for the directory itself,
// else names separated by slashes.
func cleanPath(p string) (string, *abi.Error) {
	switch {
	case p == "":
		return "", fail(abi.CodeInvalid, "path", `path is missing; it is relative, as in "a/b.txt", and "." is the directory itself`)
	case len(p) > maxPath:
		return "", fail(abi.CodeInvalid, "path", "path has %d bytes, at most %d", len(p), maxPath)
	case !utf8.ValidString(p) || strings.ContainsFunc(p, unicode.IsControl):
		return "", fail(abi.CodeInvalid, "path", "path has control characters, or is not UTF-8")
	case strings.Contains(p, `\`):
		return "", fail(abi.CodeInvalid, "path", `path must have "/" between names, and no "\"`)
	case strings.HasPrefix(p, "/"):
		return "", fail(abi.CodeDenied, "path", "path must be relative, not %.100q", p)
	}
	names := strings.Split(p, "/")
	for _, name := range names {
		switch {
		case name == "..":
			return "", fail(abi.CodeDenied, "path", `path must not have "..": %.100q`, p)
		case len(name) > maxName:
			return "", fail(abi.CodeInvalid, "path", "a name in path has %d bytes, at most %d", len(name), maxName)
		case strings.HasPrefix(strings.ToLower(name), partPrefix):
			return "", fail(abi.CodeDenied, "path", "names that begin with %q are the host's", partPrefix)
		}
	}
	p = path.Clean(p)
	if depth(p) > maxDepth {
		return "", fail(abi.CodeInvalid, "path", "path has %d names, at most %d", depth(p), maxDepth)
	}
	return p, nil
}

// depth is the number of names in a clean path.
func depth(p string) int { return strings.Count(p, "/") + 1 }
