package plan

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"skep/host/internal/definition/config"
)

// Masked is a part of a configuration that others may read.
type Masked struct {
	Kind  string `json:"kind"`
	Name  string `json:"name"`
	Value any    `json:"value"`
}

const (
	withheld = "[withheld]"
	// maxMaskedText bounds a text that is shown, in bytes: longer ones are prompts or documents.
	maxMaskedText = 200
)

// withheldKeys hold prompts, prose, variables and arguments, where anything may stand.
var withheldKeys = []string{"params", "parameters", "description", "keywords", "metadata", "command", "env", "header", "keys"}

// urlPath is what follows the host of a URL: some services have their credential there.
var urlPath = regexp.MustCompile(`(?i)([a-z][a-z0-9+.-]*://)([^/?#\s]*)[^\s]*`)

// Mask lists a configuration without secrets, prompts and other free text, and of URLs the host alone.
// Limits are not part of it.
func Mask(c *config.Config) []Masked {
	out := []Masked{}
	for _, it := range items(c) {
		if it.kind != "limit" {
			out = append(out, Masked{it.kind, it.name, mask(lastPart(it.name), it.shown)})
		}
	}
	return out
}

// lastPart is the key that a name ends with.
func lastPart(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// mask shows of the value of a key what others may read.
func mask(key string, shown any) any {
	if shown == nil || shown == "" {
		return shown
	}
	if slices.Contains(withheldKeys, key) || strings.HasPrefix(key, "declares ") {
		return withheld
	}
	switch v := shown.(type) {
	case map[string]any:
		form := map[string]any{}
		for name, value := range v {
			form[name] = mask(name, value)
		}
		return form
	case []any:
		list := []any{}
		for _, value := range v {
			list = append(list, mask(key, value))
		}
		return list
	}
	switch v := reflect.ValueOf(shown); {
	case v.Kind() == reflect.String:
		return maskText(v.String())
	case v.Kind() == reflect.Bool, v.CanInt(), v.CanUint(), v.CanFloat():
		return shown
	}
	return withheld // another form may have texts in it
}

func maskText(text string) string {
	if len(text) > maxMaskedText {
		return withheld
	}
	return urlPath.ReplaceAllStringFunc(text, func(url string) string {
		part := urlPath.FindStringSubmatch(url)
		return part[1] + part[2][strings.LastIndexByte(part[2], '@')+1:]
	})
}

// Secrets lists the secrets of a configuration, so that a text can be held against them.
func Secrets(c *config.Config) (list []string) {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		if secret, is := v.Interface().(config.Secret); is {
			if secret != "" {
				list = append(list, secret.Reveal())
			}
			return
		}
		if header, is := v.Interface().(config.HeaderFields); is {
			list = append(list, headerTexts(header)...)
			return
		}
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice, reflect.Array:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Map:
			for _, key := range v.MapKeys() {
				walk(v.MapIndex(key))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(*c))
	slices.Sort(list)
	return slices.Compact(list)
}

// headerTexts are the texts of header fields, which the configuration has as JSON.
func headerTexts(header config.HeaderFields) (list []string) {
	for _, raw := range header.Raw() {
		var text string
		if json.Unmarshal(raw, &text) != nil {
			text = string(raw)
		}
		if text != "" {
			list = append(list, text)
		}
	}
	return list
}
