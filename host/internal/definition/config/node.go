package config

// node is one key or array element of a text: where it is and what lies under
// it. The nodes of a text form the same tree as its values; the TOML parser
// keeps no positions, so the two are walked side by side.
type node struct {
	first int // offset of its first definition, 0 for none
	key   int // offset of the key or, for an element, of its value or header
	value int // offset of the value; for a table with a header, that of its key

	names    []string // children in the order of their first mention
	children map[string]*node
	elems    []*node
	tables   bool // an array of tables: [[name]]
}

// child returns the named child, or nil.
func (n *node) child(name string) *node {
	if n == nil {
		return nil
	}
	return n.children[name]
}

// elem returns the i-th element, or nil.
func (n *node) elem(i int) *node {
	if n == nil || i < 0 || i >= len(n.elems) {
		return nil
	}
	return n.elems[i]
}

// under returns the node in which a later header's keys are found: of an array
// of tables, its last element.
func (n *node) under() *node {
	if n.tables {
		return n.elems[len(n.elems)-1]
	}
	return n
}
