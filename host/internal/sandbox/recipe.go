package sandbox

import (
	"runtime"

	"skep/host/internal/wasmbin"
)

// imageRecipe numbers the way images are made: what runs before an image is
// taken, under which clock and seed. Raise it when a turn could tell.
const imageRecipe = "1"

// Recipe names what decides, besides module, limits and input, how a turn runs:
// a turn recorded under one recipe is repeated under the same only.
func Recipe() string {
	return "image-" + imageRecipe + "-meter-" + wasmbin.Version + "-" + runtime.GOARCH
}

// Full returns the limits with all defaults filled in.
func (l Limits) Full() Limits { return l.withDefaults() }
