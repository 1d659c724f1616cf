package egress

import (
	"errors"
	"net/url"
	"strings"
)

// cleanPath normalizes an escaped path: dot segments are resolved, needless escapes are
// removed, other escapes are in upper case. A path that a server may still read as one
// with dot segments is refused, because it would leave a granted prefix.
func cleanPath(escaped string) (string, error) {
	plain, err := unescapeUnreserved(escaped)
	if err != nil {
		return "", err
	}
	cleaned := removeDots(plain)
	if err := hiddenDots(cleaned); err != nil {
		return "", err
	}
	return cleaned, nil
}

func unescapeUnreserved(escaped string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(escaped); i++ {
		if escaped[i] != '%' {
			b.WriteByte(escaped[i])
			continue
		}
		if i+3 > len(escaped) {
			return "", errors.New("the path ends within an escape")
		}
		c, err := url.PathUnescape(escaped[i : i+3])
		switch {
		case err != nil:
			return "", errors.New("the path has an escape that is not hexadecimal")
		case c[0] < 0x20 || c[0] == 0x7f:
			return "", errors.New("the path has an escaped control character")
		case isAlnum(c[0]) || strings.Contains("-._~", c):
			b.WriteString(c)
		default:
			b.WriteString(strings.ToUpper(escaped[i : i+3]))
		}
		i += 2
	}
	return b.String(), nil
}

// removeDots resolves "." and ".." and keeps empty segments.
func removeDots(path string) string {
	var out []string
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	for i, s := range segments {
		last := i == len(segments)-1
		switch s {
		case ".", "..":
			if s == ".." && len(out) > 0 {
				out = out[:len(out)-1]
			}
			if last {
				out = append(out, "")
			}
		default:
			out = append(out, s)
		}
	}
	return "/" + strings.Join(out, "/")
}

// maxDecodes bounds how often a path may be escaped.
const maxDecodes = 4

// hiddenDots finds dot segments as lenient servers do: escaped slashes and backslashes
// separate segments, escapes may be nested, and a segment ends at a semicolon.
func hiddenDots(path string) error {
	for range maxDecodes {
		for s := range strings.SplitSeq(strings.ReplaceAll(path, `\`, "/"), "/") {
			s, _, _ = strings.Cut(s, ";")
			if s == "." || s == ".." {
				return errors.New("the path hides a dot segment behind an escape or a semicolon")
			}
		}
		decoded, err := url.PathUnescape(path)
		if err != nil || decoded == path {
			return nil
		}
		path = decoded
	}
	return errors.New("the path is escaped too many times")
}
