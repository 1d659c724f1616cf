package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"skep/host/internal/turn"
)

// image is the memory and the mutable globals of an instance that was started
// and warmed, and has seen no turn. Instances begin as it, and become it again.
// It is never changed; the pool set closes it.
type image struct {
	size    int64  // of the memory
	content []byte // the memory without the zeros at its end, in whole pages
	backing backing
	mapped  bool // backing holds the content
	globals []uint64
}

const (
	// osPage is the unit in which images are compared and copied, in bytes; the
	// system's pages may have another size.
	osPage = 4 << 10
	// imageShare is the part of its memory limit that a module's image may
	// take: a turn that rewrites every byte of its memory has the image
	// beside it, and both together stay within 1.25 times the limit.
	imageShare = 4
	// copyBelow is the size up to which every instance is reset by copying what
	// differs; up to warmBelow the few warm instances are. The others
	// return their pages to the system: that is fast and leaves an idle instance
	// without memory, but its next turn takes a fault for every page it
	// touches, as long as comparing a hundred pages.
	copyBelow = 1 << 20
	warmBelow = 8 << 20
)

// errImageSize is the error for an image that is too large beside its turns.
var errImageSize = errors.New("its image would be larger than a quarter of " + turn.KeyMemory)

// capture takes the image of an instance. With copies it is kept as plain bytes
// even where the system could map it.
func capture(i *instance, most int64, copies bool) (*image, error) {
	memory, ok := i.memory.Read(0, i.memory.Size())
	if !ok {
		return nil, errors.New("the memory cannot be read")
	}
	content := trim(memory)
	if int64(len(content)) > most {
		return nil, fmt.Errorf("%w: %d bytes, at most %d", errImageSize, len(content), most)
	}
	img := &image{size: int64(len(memory)), globals: make([]uint64, len(i.globals))}
	for n, g := range i.globals {
		img.globals[n] = g.Get()
	}
	if !copies {
		b, err := newBacking(content)
		if err == nil {
			img.backing, img.mapped, img.content = b, true, b.view
			return img, nil
		}
	}
	img.content = bytes.Clone(content)
	return img, nil
}

// trim cuts off the zero pages at the end of a memory. The result is a multiple of
// 64 KiB, so it is whole for the page size of any system.
func trim(memory []byte) []byte {
	n := len(memory)
	for n >= osPage && isZero(memory[n-osPage:n]) {
		n -= osPage
	}
	return memory[:(n+page-1)/page*page]
}

var zeroPage [osPage]byte

func isZero(b []byte) bool { return bytes.Equal(b, zeroPage[:len(b)]) }

// fill gives a new memory the image's content.
func (img *image) fill(l *linearMemory) error {
	if uint64(img.size) > l.space.size() {
		return errors.New("no address space for an instance")
	}
	if img.mapped {
		if err := img.backing.mapInto(&l.space, uint64(img.size)); err != nil {
			return err
		}
	}
	memory := l.Reallocate(uint64(img.size))
	if memory == nil {
		return errors.New("no memory for an instance")
	}
	if !img.mapped {
		img.copyTo(memory)
	}
	return nil
}

// restore makes the memory of an instance the image's again. It is as large as
// the image: one that has grown cannot be restored. A warm one keeps its pages.
func (img *image) restore(l *linearMemory, warm bool) error {
	memory := l.space.all[:img.size]
	if !img.resetsByCopy(warm) {
		return img.backing.reset(memory)
	}
	if n := len(img.content); img.mapped && len(memory)-n > copyBelow {
		// Zeroing so many pages is faster than comparing them.
		if err := img.backing.reset(memory[n:]); err != nil {
			return err
		}
		memory = memory[:n]
	}
	if img.mapped {
		img.backing.written(memory, func(at int) { img.copyPage(memory, at) })
		return nil
	}
	img.copyTo(memory)
	return nil
}

// resetsByCopy reports whether instances are reset by copying.
func (img *image) resetsByCopy(warm bool) bool {
	return !img.mapped || img.size <= copyBelow || warm && img.size <= warmBelow
}

// copyTo copies the pages that differ. Pages without a write stay shared, or
// without memory.
func (img *image) copyTo(memory []byte) {
	for at := 0; at < len(memory); at += osPage {
		img.copyPage(memory, at)
	}
}

func (img *image) copyPage(memory []byte, at int) {
	to := memory[at : at+osPage]
	if at >= len(img.content) {
		if !isZero(to) {
			clear(to)
		}
		return
	}
	if from := img.content[at : at+osPage]; !bytes.Equal(from, to) {
		copy(to, from)
	}
}

// idleBytes is what an instance keeps of its memory after a restore, at most.
func (img *image) idleBytes(warm bool) int64 {
	switch content := int64(len(img.content)); {
	case !img.resetsByCopy(warm):
		return 0
	case img.mapped:
		return min(img.size, content+copyBelow)
	}
	return img.size
}

// close frees the memory file of the image. Instances that began as it keep their
// mappings.
func (img *image) close() {
	if img.mapped {
		img.content = nil
		img.backing.close()
	}
}
