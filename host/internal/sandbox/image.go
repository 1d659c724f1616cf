package sandbox

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

// image is the memory and the mutable globals of an instance that was started
// and warmed, and has seen no turn. Instances begin as it, and become it again.
// It is never changed; the pool closes it.
type image struct {
	size    int64  // of the memory
	content []byte // the memory without the zeros at its end, in whole pages
	backing backing
	mapped  bool // backing holds the content
	globals []uint64
}

const (
	// osPage is the grain in which images are compared and copied; it need not
	// be the system's.
	osPage = 4 << 10
	// imageShare is the part of its memory limit that a module's image may
	// take: a turn that rewrites every byte of its memory has the image
	// beside it, and both together stay within 1.25 times the limit.
	imageShare = 4
	// copyBelow is the size up to which every instance is reset by copying what
	// differs; up to warmBelow the few that will be used next are. The others
	// give their pages back: that is done at once and leaves an idle instance
	// without memory, but its next turn pays with a fault for every page it
	// touches, as much as comparing a hundred pages.
	copyBelow = 1 << 20
	warmBelow = 8 << 20
)

// errImageSize says that an image would take too much memory beside its turns.
var errImageSize = errors.New("its image would be larger than a quarter of " + keyMemory)

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

// trim cuts the pages off that are zero, at the end of a memory. What is left is
// whole for any page size a system may have.
func trim(memory []byte) []byte {
	n := len(memory)
	for n >= osPage && isZero(memory[n-osPage:n]) {
		n -= osPage
	}
	return memory[:(n+page-1)/page*page]
}

var zeroPage [osPage]byte

func isZero(b []byte) bool { return bytes.Equal(b, zeroPage[:len(b)]) }

// lay fills a memory that has nothing yet.
func (img *image) lay(l *linear) error {
	if uint64(img.size) > l.space.size() {
		return errors.New("no address space for an instance")
	}
	if img.mapped {
		if err := img.backing.lay(&l.space, uint64(img.size)); err != nil {
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
func (img *image) restore(l *linear, warm bool) error {
	memory := l.space.all[:img.size]
	if !img.keepsPages(warm) {
		return img.backing.reset(memory)
	}
	if n := len(img.content); img.mapped && len(memory)-n > copyBelow {
		// So much need not be read to be zero.
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

// keepsPages reports whether instances are reset by copying.
func (img *image) keepsPages(warm bool) bool {
	return !img.mapped || img.size <= copyBelow || warm && img.size <= warmBelow
}

// copyTo copies the pages that differ. Those that nobody wrote to stay shared,
// or without memory.
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
	case !img.keepsPages(warm):
		return 0
	case img.mapped:
		return min(img.size, content+copyBelow)
	}
	return img.size
}

// sum is a digest of the image: of memory and globals alike.
func (img *image) sum() [sha256.Size]byte {
	h := sha256.New()
	head := binary.LittleEndian.AppendUint64(nil, uint64(img.size))
	for _, g := range img.globals {
		head = binary.LittleEndian.AppendUint64(head, g)
	}
	h.Write(head)
	h.Write(img.content)
	return [sha256.Size]byte(h.Sum(nil))
}

// close gives back what the system holds for the image. Instances that began as
// it keep what they have.
func (img *image) close() {
	if img.mapped {
		img.content = nil
		img.backing.close()
	}
}
