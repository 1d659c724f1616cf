package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/BurntSushi/toml"
)

// maxBrackets bounds how deep the parser can recurse in a text that the scanner
// could not follow to its end.
const maxBrackets = 10_000

// read turns a text into values and their positions. A text that is not TOML
// has exactly one fault, because nothing after it can be trusted.
func read(src *source) (map[string]any, *node, *Fault) {
	if f := src.checkText(); f != nil {
		return nil, nil, f
	}
	root, off, limit := scan(src.text)
	if limit == "" && off < len(src.text) && strings.Count(src.text, "[")+strings.Count(src.text, "{") > maxBrackets {
		limit = "text that is not TOML"
	}
	if limit != "" {
		f := src.fault(off, "", limit)
		return nil, nil, &f
	}
	values, _, err := decode(src.text)
	if err != nil {
		f := syntaxFault(src, root, err)
		return nil, nil, &f
	}
	return values, root, nil
}

// decode calls the parser, which panics on some malformed texts.
func decode(text string) (values map[string]any, meta toml.MetaData, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("not TOML: %v", r)
		}
	}()
	meta, err = toml.Decode(text, &values)
	return values, meta, err
}

func syntaxFault(src *source, root *node, err error) Fault {
	var bad toml.ParseError
	if !errors.As(err, &bad) {
		return src.fault(0, "", err.Error())
	}
	// The parser's line and column disagree with its offset at line ends.
	f := src.fault(bad.Position.Start, bad.LastKey, syntaxMessage(bad.Message)+firstDefinition(src, root, bad))
	before := src.text[:max(0, min(bad.Position.Start, len(src.text)))]
	switch word, isValue := strings.CutPrefix(f.Message, "expected value but found "); {
	case isValue:
		f.suggest(truths[strings.ToLower(strings.Trim(strings.TrimSuffix(word, " instead"), `"`))])
	case strings.Contains(f.Message, "to end table name") && strings.HasSuffix(before, " "):
		f.Message += "; a name has no blanks"
	}
	return f
}

// firstDefinition names the line of the first definition of a key that is defined again;
// empty if it cannot be found.
func firstDefinition(src *source, root *node, bad toml.ParseError) string {
	rest, isKey := strings.CutPrefix(bad.Message, "Key '")
	path, _, again := strings.Cut(rest, "' has already been defined")
	if !isKey || !again {
		return ""
	}
	n := root
	for name := range strings.SplitSeq(path, ".") {
		if n = n.child(strings.Trim(name, `"`)); n == nil {
			return ""
		}
		if n.tables && len(n.elems) > 0 {
			n = n.under()
		}
	}
	if n.first == 0 {
		return ""
	}
	line, _ := src.pos(n.first)
	if again, _ := src.pos(bad.Position.Start); again == line {
		return ""
	}
	return fmt.Sprintf("; the first one is in line %d", line)
}

// truths are other words for true and false.
var truths = map[string]string{
	"yes": "true", "on": "true", "true": "true", "no": "false", "off": "false", "false": "false",
}

// syntaxMessage gives the parser's message the form of all the others.
func syntaxMessage(s string) string {
	s, _, _ = strings.Cut(strings.TrimSuffix(s, "."), "\n")
	if first, rest, ok := strings.Cut(s, " "); ok && first == "Key" || first == "Invalid" {
		return strings.ToLower(first) + " " + rest
	}
	return s
}
