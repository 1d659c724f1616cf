package refclient

import (
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
)

// Object is a JSON object whose members keep their order.
type Object []Member

// Member is one name of an object with its value: nil, a bool, string, int or
// float64, an Object, or a list of strings or values.
type Member struct {
	Name  string
	Value any
}

// Dumps writes a value as Python's json module does: a space behind each comma
// and colon, and nothing but ASCII.
func Dumps(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case int:
		return strconv.Itoa(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case string:
		return quote(v)
	case []string:
		var all []string
		for _, e := range v {
			all = append(all, quote(e))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case []any:
		var all []string
		for _, e := range v {
			all = append(all, Dumps(e))
		}
		return "[" + strings.Join(all, ", ") + "]"
	case Object:
		var all []string
		for _, m := range v {
			all = append(all, quote(m.Name)+": "+Dumps(m.Value))
		}
		return "{" + strings.Join(all, ", ") + "}"
	}
	panic(fmt.Sprintf("refclient: a %T in a request", v))
}

func quote(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case strings.ContainsRune("\n\r\t\b\f", r):
			b.WriteString(map[rune]string{'\n': `\n`, '\r': `\r`, '\t': `\t`, '\b': `\b`, '\f': `\f`}[r])
		case r < ' ' || r > '~' && r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		case r >= 0x10000:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
