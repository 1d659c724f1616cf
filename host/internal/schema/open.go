package schema

import (
	"fmt"
	"regexp"
)

// openKeyword checks the keywords that only the schemas of strangers may use. In
// them numbers are compared, and unknown formats are remarks.
func (l *linter) openKeyword(at, key string, v any) (known bool, err error) {
	switch key {
	case "$ref", "definitions", "$defs":
		return true, l.errorf(at, "is not taken; write the schema in its place")
	case "type", "enum", "const", "format", "examples", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
		"minProperties", "maxProperties", "uniqueItems", "$comment", "x-skep":
		return true, nil
	case "additionalProperties":
		if _, flag := v.(bool); flag {
			return true, nil
		}
		return true, l.schema(at, v)
	case "items", "not", "else":
		return true, l.schema(at, v)
	case "anyOf", "oneOf":
		return true, l.list(at, v)
	case "pattern":
		return true, l.pattern(at, v)
	}
	return false, nil
}

// pattern bounds the patterns, all of which a long text may have to pass.
func (l *linter) pattern(at string, v any) error {
	text, ok := v.(string)
	if !ok {
		return l.errorf(at, "must be a text")
	}
	if l.patterns += len(text); l.patterns > maxPatterns {
		return l.errorf(at, "all patterns together have more than %d bytes", maxPatterns)
	}
	if l.instructions += instructions(text); l.instructions > maxInstructions {
		return l.errorf(at, "all patterns together repeat more than can be checked")
	}
	if _, err := regexp.Compile(text); err != nil {
		return l.errorf(at, "%v", fmt.Errorf("is no pattern: %w", err))
	}
	return nil
}
