package main

import (
	"encoding/json"
	"errors"
	"fmt"

	skep "skep/sdk/go"
)

// Records lie in pages, since a scope of values has 1,000 keys and 4 MiB: ten to a page, each of
// a number of bytes at most. A longer one is a blob, and the page has its address.
const (
	perPage = 10
	// maxPlanRecord keeps a plan below the 64 blobs of a turn.
	maxPlanRecord = 6 << 10
	// maxEndRecord keeps 1,000 of them below 3 MiB.
	maxEndRecord = 3 << 10
)

// pages are numbered records below a prefix of keys. What is put is written by flush.
type pages struct {
	t       *skep.Turn
	prefix  string
	longest int // record in a page, in bytes
	read    map[int][]json.RawMessage
	dirty   []int
}

func newPages(t *skep.Turn, prefix string, longest int) *pages {
	return &pages{t: t, prefix: prefix, longest: longest, read: map[int][]json.RawMessage{}}
}

func (p *pages) key(page int) string { return fmt.Sprintf("%s/%d", p.prefix, page) }

func (p *pages) page(n int) ([]json.RawMessage, error) {
	if list, ok := p.read[n]; ok {
		return list, nil
	}
	list := make([]json.RawMessage, 0, perPage)
	text, err := p.t.KV(skep.ScopeTask).Get(p.key(n))
	if err == nil {
		err = json.Unmarshal([]byte(text), &list)
	} else if errors.Is(err, skep.NotFound) {
		err = nil
	}
	for len(list) < perPage {
		list = append(list, nil)
	}
	p.read[n] = list
	return list, err
}

// get decodes record i into v, and leaves v alone where there is none.
func (p *pages) get(i int, v any) error {
	raw, err := p.raw(i)
	if err != nil || len(raw) == 0 {
		return err
	}
	return json.Unmarshal(raw, v)
}

// raw is record i, empty where there is none.
func (p *pages) raw(i int) (json.RawMessage, error) {
	list, err := p.page(i / perPage)
	if err != nil {
		return nil, err
	}
	raw := list[i%perPage]
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	if raw[0] != '"' {
		return raw, nil
	}
	var address string
	if err := json.Unmarshal(raw, &address); err != nil {
		return nil, err
	}
	return p.t.BlobGet(address)
}

// put keeps record i.
func (p *pages) put(i int, v any) error {
	raw, err := encodeJSON(v)
	if err != nil {
		return err
	}
	if len(raw) > p.longest {
		address, err := p.t.BlobPut(raw)
		if err != nil {
			return err
		}
		raw = []byte(`"` + address + `"`)
	}
	n := i / perPage
	list, err := p.page(n)
	if err != nil {
		return err
	}
	if last := len(p.dirty) - 1; last < 0 || p.dirty[last] != n {
		p.dirty = append(p.dirty, n)
	}
	list[i%perPage] = raw
	return nil
}

// flush writes the pages that have changed, each once.
func (p *pages) flush() error {
	done := map[int]bool{}
	for _, n := range p.dirty {
		if done[n] {
			continue
		}
		done[n] = true
		raw, err := encodeJSON(p.read[n])
		if err != nil {
			return err
		}
		if err := p.t.KV(skep.ScopeTask).Put(p.key(n), string(raw)); err != nil {
			return err
		}
	}
	p.dirty = nil
	return nil
}

// clear deletes the pages of n records.
func (p *pages) clear(n int) error {
	for page := range (n + perPage - 1) / perPage {
		if err := p.t.KV(skep.ScopeTask).Delete(p.key(page)); err != nil {
			return err
		}
	}
	p.read, p.dirty = map[int][]json.RawMessage{}, nil
	return nil
}
