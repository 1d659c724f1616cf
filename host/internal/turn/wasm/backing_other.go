//go:build !linux

package wasm

import "errors"

// backing is a way to share an image's pages. There is none here: images are
// copied.
type backing struct{ view []byte }

func newBacking([]byte) (backing, error) { return backing{}, errors.ErrUnsupported }

func (*backing) mapInto(*space, uint64) error { return errors.ErrUnsupported }

func (*backing) reset([]byte) error { return errors.ErrUnsupported }

func (*backing) close() {}

func (*backing) written([]byte, func(int)) {} // nothing is ever mapped
