package amp

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"skep/host/internal/gateway"
	"skep/host/internal/gateway/amp/message"
)

// constraints are what a capability declares of its parameters (M-022). Other members are shown to
// callers, and not enforced.
type constraints struct {
	// MaxInputLength bounds the characters of all texts; nil is no bound.
	MaxInputLength *float64 `json:"max_input_length"`
	// MaxTokens bounds the estimated_tokens of a negotiation; nil is no bound. It binds no request.
	MaxTokens *float64 `json:"max_tokens"`
	// Languages are the language tags that are taken; an empty list is any.
	Languages []string `json:"supported_languages"`
}

// input is what constraints are held against.
type input struct {
	length    int // characters of all texts
	languages []string
}

// inputOf reads parameters, an object.
func inputOf(parameters json.RawMessage) (in input) {
	var named struct {
		Language  string   `json:"language"`
		Languages []string `json:"languages"`
		Source    string   `json:"source_language"`
		Target    string   `json:"target_language"`
	}
	var all any
	_ = json.Unmarshal(parameters, &named) // members of other forms name no language
	_ = json.Unmarshal(parameters, &all)   // it was read before
	in.length = textLength(all)
	in.languages = slices.DeleteFunc(append(named.Languages, named.Language, named.Source, named.Target), func(tag string) bool { return tag == "" })
	return in
}

// textLength counts the characters of the texts in a value.
func textLength(value any) (n int) {
	switch value := value.(type) {
	case string:
		return utf8.RuneCountInString(value)
	case []any:
		for _, one := range value {
			n += textLength(one)
		}
	case map[string]any:
		for _, one := range value {
			n += textLength(one)
		}
	}
	return n
}

// check refuses an input that does not fit.
func (c constraints) check(capability string, in input) error {
	if most := c.MaxInputLength; most != nil && float64(in.length) > *most {
		f := message.Faultf(message.InvalidSchema, message.ReasonViolations, "the texts of the parameters have %d characters, and %q takes %v", in.length, capability, *most)
		f.Details = map[string]any{"constraint": "max_input_length", "max_input_length": *most}
		return f
	}
	for _, tag := range in.languages {
		if len(c.Languages) > 0 && !slices.ContainsFunc(c.Languages, func(known string) bool { return includesLanguage(known, tag) }) {
			f := message.Faultf(message.InvalidSchema, message.ReasonViolations, "the language %.40q is none that %q takes: %s", tag, capability, strings.Join(c.Languages, ", "))
			f.Details = map[string]any{"constraint": "supported_languages", "supported_languages": c.Languages}
			return f
		}
	}
	return nil
}

// includesLanguage reports whether a tag is a language, or a kind of it as en-GB is of en
// (https://www.rfc-editor.org/rfc/rfc4647#section-3.3.1).
func includesLanguage(language, tag string) bool {
	if len(tag) > len(language) && tag[len(language)] == '-' {
		tag = tag[:len(language)]
	}
	return strings.EqualFold(language, tag)
}

// checkConstraints refuses an input that does not fit the constraints of a capability, and asks for
// it where there are some. Constraints of another form are not enforced.
func (g *Gateway) checkConstraints(c gateway.Capability, in func() input) error {
	if len(c.Constraints) == 0 {
		return nil
	}
	return g.constraintsOf(c).check(c.ID, in())
}

// takesTokens reports whether a task of so many tokens is within what a capability declares; nil is
// a task that does not tell (M-033).
func (g *Gateway) takesTokens(c gateway.Capability, tokens *float64) bool {
	most := g.constraintsOf(c).MaxTokens
	return tokens == nil || most == nil || *tokens <= *most
}

func (g *Gateway) constraintsOf(c gateway.Capability) (declared constraints) {
	if len(c.Constraints) == 0 {
		return declared
	}
	if err := json.Unmarshal(c.Constraints, &declared); err != nil {
		g.Log.Warn("amp: the constraints of a capability are not checked", "capability", c.ID, "error", err)
		return constraints{}
	}
	return declared
}
