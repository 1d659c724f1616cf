package config

import (
	"fmt"
	"strconv"
)

// location is a setting's place: its path as written in messages, and its node. The
// node of an absent setting is the table's from which it is missing.
type location struct {
	path   string
	node   *node
	absent bool
}

func (sp location) child(name string) location {
	path := quoteKey(name)
	if sp.path != "" {
		path = sp.path + "." + path
	}
	if n := sp.node.child(name); n != nil && !sp.absent {
		return location{path: path, node: n}
	}
	return location{path: path, node: sp.node, absent: true}
}

func (sp location) elem(i int) location {
	path := fmt.Sprintf("%s[%d]", sp.path, i)
	if n := sp.node.elem(i); n != nil && !sp.absent {
		return location{path: path, node: n}
	}
	return location{path: path, node: sp.node, absent: true}
}

// quoteKey writes one part of a key as TOML needs it.
func quoteKey(name string) string {
	for i := 0; i < len(name); i++ {
		if !isBareKey(name[i]) {
			return strconv.Quote(name)
		}
	}
	if name == "" {
		return `""`
	}
	return name
}
