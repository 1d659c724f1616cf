package capability

import "skep/abi"

// emit shows progress of the turn to the readers of its task.
func (o *ops) emit(req []byte) ([]byte, *abi.Error) {
	var ask abi.EmitRequest
	if fault := decode(abi.OpEmit, req, &ask); fault != nil {
		return nil, fault
	}
	if fault := checkEmit(ask); fault != nil {
		return nil, fault
	}
	status, fault := o.turn.Emit(ask)
	if fault != nil {
		return nil, fault
	}
	return encode(abi.OpEmit, abi.EmitResponse{Status: status})
}

// checkEmit checks that there is exactly one thing to show, within its size limit.
func checkEmit(ask abi.EmitRequest) *abi.Error {
	members := 0
	for _, set := range []bool{ask.Progress != nil, ask.Chunk != nil, ask.Note != nil} {
		if set {
			members++
		}
	}
	if members != 1 {
		return abi.Errorf(abi.CodeInvalid, abi.OpEmit, "members", "the request must have one of progress, chunk and note, not %d", members)
	}
	switch {
	case ask.Progress != nil:
		return checkProgress(*ask.Progress)
	case ask.Chunk != nil:
		return checkEmitText("chunk", *ask.Chunk, abi.MaxEmitChunk)
	}
	return checkEmitText("note", *ask.Note, abi.MaxEmitText)
}

func checkProgress(p abi.Progress) *abi.Error {
	if p.Text == "" && p.Fraction == nil {
		return abi.Errorf(abi.CodeInvalid, abi.OpEmit, "progress", "progress must have text or fraction")
	}
	if f := p.Fraction; f != nil && (*f < 0 || *f > 1) {
		return abi.Errorf(abi.CodeInvalid, abi.OpEmit, "fraction", "fraction must be from 0 to 1, not %v", *f)
	}
	return checkEmitText("progress text", p.Text, abi.MaxEmitText)
}

func checkEmitText(what, text string, most int) *abi.Error {
	if len(text) > most {
		return abi.Errorf(abi.CodeLimit, abi.OpEmit, "size", "a %s of %d bytes, at most %d", what, len(text), most)
	}
	return nil
}
