package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"skep/spec/mail"
)

var (
	actionName  = regexp.MustCompile(`^[a-z][a-z0-9_]{0,63}$`)
	principalID = regexp.MustCompile(`^[A-Za-z0-9._~-]{1,128}$`)
	localName   = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)
	bundledName = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,63}$`)
	headerName  = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9-]{0,63}$`)
	sha256Hex   = regexp.MustCompile(`^[0-9a-fA-F]{64}$`)
)

// keyAsValue gives a table's own name the form of a value, so that names in keys
// and names in values are checked alike.
func (t *table) keyAsValue(name string) value {
	at := t.location
	at.node = &node{key: at.node.key, value: at.node.key}
	return value{location: at, text: name, shown: strconv.Quote(name)}
}

// checkName reports a swarm's or agent's name that could not be part of an
// address, by the rules of package mail. Other protocols write a swarm's name
// into paths, so a slash is refused there as well.
func (d *decoder) checkName(v value, what string, swarm bool) {
	err := mail.CheckAgentName(v.text)
	if err == nil && swarm {
		err = mail.CheckSwarmName(v.text)
		if strings.Contains(v.text, "/") {
			err = errors.New(`must not contain "/"`)
		}
	}
	if err != nil {
		d.atValue(v.location, fmt.Sprintf("the name of %s %s", what, err)).suggest(v.suggest(cleanName(v.text)))
	}
}

// cleanName replaces what must not stand in a name, or gives "" if nothing
// usable is left.
func cleanName(name string) string {
	clean := strings.Trim(strings.Map(func(r rune) rune {
		if r == '/' || mail.CheckAgentName(string(r)) != nil {
			return '-'
		}
		return r
	}, name), "-")
	if clean == name || mail.CheckAgentName(clean) != nil {
		return ""
	}
	return clean
}

// checkLocal reports a name that is only used within the file.
func (d *decoder) checkLocal(sp location, name, what string) {
	if !localName.MatchString(name) {
		d.atKey(sp, fmt.Sprintf("the name of %s must be 1 to 64 letters, digits, \"_\" or \"-\", not %q", what, name))
	}
}
