package wasm

import (
	"runtime"

	"skep/host/internal/turn/wasm/binary"
)

// imageRecipe numbers the procedure of building images: the code that runs before an
// image is taken, its clock and seed. Raise it when a turn could notice a change.
const imageRecipe = "1"

// Recipe names what, besides module, limits and input, determines how a turn runs:
// a recorded turn is repeated under the same recipe only.
func Recipe() string {
	return "image-" + imageRecipe + "-meter-" + binary.Version + "-" + runtime.GOARCH
}
