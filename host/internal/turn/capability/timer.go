package capability

import (
	"context"
	"time"

	"skep/abi"
)

func (o *ops) timerSet(_ context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.TimerRequest
	if fault := decode(abi.OpTimerSet, req, &ask); fault != nil {
		return nil, fault
	}
	id, fault := o.turn.SetTimer(time.Duration(ask.After), ask.Body)
	if fault != nil {
		return nil, fault
	}
	return encode(abi.OpTimerSet, abi.TimerResponse{ID: id})
}

func (o *ops) timerCancel(_ context.Context, req []byte) ([]byte, *abi.Error) {
	var ask abi.TimerCancelRequest
	if fault := decode(abi.OpTimerCancel, req, &ask); fault != nil {
		return nil, fault
	}
	if fault := o.turn.CancelTimer(ask.ID); fault != nil {
		return nil, fault
	}
	return []byte("{}"), nil
}
