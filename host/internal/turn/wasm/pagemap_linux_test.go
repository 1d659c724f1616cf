package wasm

import (
	"bytes"
	"slices"
	"testing"
)

// The pages that were written since an image was laid are told from those that
// were only read, or never touched; behind the image too. Without the system's
// record all count as written.
func TestPagemapTellsWhatWasWritten(t *testing.T) {
	t.Parallel()
	const image, size = 600 * osPage, 1200 * osPage // more than one read of the record
	b, err := newBacking(bytes.Repeat([]byte("image"), image/5))
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	if b.pagemap.fd < 0 {
		t.Skip("this system has no record of pages")
	}
	space := reserve(size)
	defer space.free()
	if err := b.mapInto(&space, size); err != nil {
		t.Fatal(err)
	}
	memory := space.all[:size]
	for _, at := range []int{0, 3 * osPage, 599 * osPage} {
		if memory[at] != b.view[at] { // reads
			t.Fatal("the image is not there")
		}
	}
	want := []int{1 * osPage, 2 * osPage, 511 * osPage, 512 * osPage, 598 * osPage, 600 * osPage, 1199 * osPage}
	for _, at := range want {
		memory[at+7]++
	}
	if got := written(&b, memory); !slices.Equal(got, want) {
		t.Errorf("written %v, want %v", got, want)
	}
	if err := b.reset(memory); err != nil {
		t.Fatal(err)
	}
	if got := written(&b, memory); len(got) != 0 {
		t.Errorf("after a reset %v are written", got)
	}
	b.pagemap.close()
	b.pagemap = pagemap{-1}
	if got := written(&b, memory); len(got) != size/osPage {
		t.Errorf("without a record %d of %d pages count as written", len(got), size/osPage)
	}
}

func written(b *backing, memory []byte) (list []int) {
	b.written(memory, func(at int) { list = append(list, at) })
	return list
}
