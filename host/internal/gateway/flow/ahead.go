package flow

import (
	"hash/maphash"

	"skep/host/internal/gateway"
)

// ahead remembers the chunks that were shown before the log has them. A turn that is
// run again must bring the same chunks.
type ahead struct {
	seed maphash.Seed
	// shown are hashes of the chunks, in order.
	shown []uint64
	// turn is the running turn, emissions how many of it were read, turnChunks how many
	// of them were chunks. lost is set when some were not read.
	turn, emissions, turnChunks int64
	lost                        bool
}

func newAhead() ahead { return ahead{seed: maphash.MakeSeed()} }

// follows counts an emission and reports whether all before it were read.
func (a *ahead) follows(k emitted) bool {
	if k.Turn != a.turn || k.N == 1 { // another turn, or the same from its begin
		a.turn, a.emissions, a.turnChunks, a.lost = k.Turn, 0, 0, false
	}
	a.lost = a.lost || k.N != a.emissions+1
	a.emissions = k.N
	return !a.lost
}

// addChunk notes the next chunk of the turn. It is not fresh if an earlier attempt has
// shown it.
func (a *ahead) addChunk(text string) (fresh bool, err error) {
	sum := maphash.String(a.seed, text)
	i := a.turnChunks
	a.turnChunks++
	if i == int64(len(a.shown)) {
		a.shown = append(a.shown, sum)
		return true, nil
	}
	if a.shown[i] != sum {
		return false, gateway.ErrStreamLost
	}
	return false, nil
}

// confirm compares what was shown with the chunks of an output in the log, and returns how
// many of them were. A turn that waits for a person has an output for each part of it.
func (a *ahead) confirm(k emitted, chunks []string) (shown int, err error) {
	if len(a.shown) > len(chunks) {
		return 0, gateway.ErrStreamLost
	}
	for i, sum := range a.shown {
		if maphash.String(a.seed, chunks[i]) != sum {
			return 0, gateway.ErrStreamLost
		}
	}
	shown = len(a.shown)
	a.shown, a.turn, a.emissions, a.turnChunks, a.lost = a.shown[:0], k.Turn, k.N, 0, false
	return shown, nil
}
