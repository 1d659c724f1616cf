package mail

import "strings"

// shape is the set of keys of one kind of object, required ones first. There are
// never more than ten, so a search beats a map, and a set of them fits a word.
type shape struct {
	keys     []string
	required int
}

// find returns the index of key, or -1.
func (s *shape) find(key string) int {
	for i, k := range s.keys {
		if k == key {
			return i
		}
	}
	return -1
}

// twin returns the key that differs from key in letter case only, or "".
func (s *shape) twin(key string) string {
	for _, k := range s.keys {
		if strings.EqualFold(k, key) {
			return k
		}
	}
	return ""
}

// keySet notices duplicate keys in an object whose keys are not known. Few keys
// are compared, many are hashed, so that no input costs quadratic time.
type keySet struct {
	few  [8]string
	n    int // of few
	many map[string]struct{}
}

// add reports whether key is new.
func (k *keySet) add(key string) bool {
	for _, have := range k.few[:k.n] {
		if have == key {
			return false
		}
	}
	if k.n < len(k.few) {
		k.few[k.n] = key
		k.n++
		return true
	}
	if k.many == nil {
		k.many = make(map[string]struct{})
	}
	before := len(k.many)
	k.many[key] = struct{}{}
	return len(k.many) > before
}
