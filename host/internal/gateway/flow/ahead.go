package flow

import (
	"hash/maphash"
	"math"

	"skep/host/internal/gateway"
)

// ahead remembers the pieces that were shown before the log has them. A turn that is
// run again must bring the same pieces.
type ahead struct {
	seed maphash.Seed
	// shown are hashes of the pieces, in order.
	shown []uint64
	// turn is the running turn, emissions how many of it were read, turnPieces how many
	// of them were pieces that are remembered. lost is set when some were not read.
	turn, emissions, turnPieces int64
	lost                        bool
}

func newAhead() ahead { return ahead{seed: maphash.MakeSeed()} }

// follows counts an emission and reports whether all before it were read.
func (a *ahead) follows(k emitted) bool {
	if k.Turn != a.turn || k.N == 1 { // another turn, or the same from its begin
		a.begin(k.Turn, 0)
	}
	a.lost = a.lost || k.N != a.emissions+1
	a.emissions = k.N
	return !a.lost
}

// begin begins a turn of which so many emissions are read, with no pieces.
func (a *ahead) begin(turn, emissions int64) {
	a.turn, a.emissions, a.turnPieces, a.lost = turn, emissions, 0, false
}

// addPiece notes the next piece of the turn. It is not fresh if an earlier attempt has
// shown it.
func (a *ahead) addPiece(p gateway.Piece) (fresh bool, err error) {
	sum := a.sum(p)
	i := a.turnPieces
	a.turnPieces++
	if i == int64(len(a.shown)) {
		a.shown = append(a.shown, sum)
		return true, nil
	}
	if a.shown[i] != sum {
		return false, gateway.ErrStreamLost
	}
	return false, nil
}

// sum is a hash of what a piece shows.
func (a *ahead) sum(p gateway.Piece) uint64 {
	fraction := -1.0
	if p.Fraction != nil {
		fraction = *p.Fraction
	}
	return maphash.Comparable(a.seed, shownPiece{p.Kind, p.Text, math.Float64bits(fraction)})
}

// shownPiece is what makes two pieces the same.
type shownPiece struct {
	kind     gateway.PieceKind
	text     string
	fraction uint64
}

// confirm compares what was shown with the pieces of an output in the log, and returns how
// many of them were. A turn that waits for a person has an output for each part of it.
func (a *ahead) confirm(k emitted, pieces []gateway.Piece) (shown int, err error) {
	if len(a.shown) > len(pieces) {
		return 0, gateway.ErrStreamLost
	}
	for i, sum := range a.shown {
		if a.sum(pieces[i]) != sum {
			return 0, gateway.ErrStreamLost
		}
	}
	shown = len(a.shown)
	a.shown = a.shown[:0]
	a.begin(k.Turn, k.N)
	return shown, nil
}
