package stream

import (
	"encoding/json"
	"slices"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"skep/host/internal/gateway/uamp/envelope"
)

// Patches are the changes by which a stream makes a JSON document of an empty object (U-067).
// They are used by one goroutine.
type Patches struct {
	changes        []change
	size, maxBytes int
}

// maxChanges is the number of changes of a stream, of which each reads and writes the whole
// document. Patches of one form in a row count as one.
const maxChanges = 256

// change is a JSON Patch (https://www.rfc-editor.org/rfc/rfc6902), or else a merge patch
// (https://www.rfc-editor.org/rfc/rfc7396).
type change struct {
	patch jsonpatch.Patch
	merge json.RawMessage
}

// NewPatches returns an empty list of changes, which takes patches of at most maxBytes in all,
// and makes a document of at most as many.
func NewPatches(maxBytes int) *Patches { return &Patches{maxBytes: maxBytes} }

// Add takes the payload of a patch: patch has a JSON Patch, merge a merge patch. A payload with
// neither changes nothing: the document names no form.
func (p *Patches) Add(payload json.RawMessage) error {
	var known struct{ Patch, Merge json.RawMessage }
	if payload != nil && json.Unmarshal(payload, &known) != nil {
		return envelope.Faultf(envelope.Malformed, "the payload of a patch is no object")
	}
	if p.size += len(known.Patch) + len(known.Merge); p.size > p.maxBytes {
		return envelope.Faultf(envelope.TooLarge, "the patches of the stream have more than %d bytes", p.maxBytes)
	}
	switch {
	case known.Patch != nil:
		patch, err := jsonpatch.DecodePatch(known.Patch)
		if err != nil {
			return envelope.Faultf(envelope.Malformed, "patch is no JSON Patch: %v", err)
		}
		if slices.ContainsFunc(patch, takesWhole) {
			return envelope.Faultf(envelope.Malformed, "patch copies the whole document into itself")
		}
		// Patches in a row are one: the document is read and written once for all of them.
		if n := len(p.changes); n > 0 && p.changes[n-1].merge == nil {
			p.changes[n-1].patch = append(p.changes[n-1].patch, patch...)
			return nil
		}
		p.changes = append(p.changes, change{patch: patch})
	case known.Merge != nil:
		p.changes = append(p.changes, change{merge: known.Merge})
	}
	if len(p.changes) > maxChanges {
		return envelope.Faultf(envelope.TooLarge, "the stream has more than %d changes of its document", maxChanges)
	}
	return nil
}

// takesWhole reports whether an operation copies the whole document. The library would copy it as
// it was before the patch.
func takesWhole(op jsonpatch.Operation) bool {
	from, err := op.From()
	return err == nil && from == ""
}

// Document returns the document after all changes, nil if there are none.
func (p *Patches) Document() (json.RawMessage, error) {
	if len(p.changes) == 0 {
		return nil, nil
	}
	document := []byte("{}")
	options := jsonpatch.NewApplyOptions()
	options.AccumulatedCopySizeLimit = int64(p.maxBytes)
	for _, c := range p.changes {
		var err error
		if c.merge != nil {
			document, err = jsonpatch.MergePatch(document, c.merge)
		} else {
			document, err = c.patch.ApplyWithOptions(document, options)
		}
		if err != nil {
			return nil, envelope.Faultf(envelope.Malformed, "the patches of the stream do not apply: %v", err)
		}
		if len(document) > p.maxBytes { // the library bounds copies within one patch only
			return nil, envelope.Faultf(envelope.TooLarge, "the document of the stream has more than %d bytes", p.maxBytes)
		}
	}
	return document, nil
}
