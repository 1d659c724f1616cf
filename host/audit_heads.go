package host

import (
	"context"

	"skep/host/internal/api/audit"
	"skep/host/internal/datadir"
	"skep/host/internal/store/cluster"
)

// headTable is [audit.HeadTable] on the server that hosts share.
type headTable struct{ member *cluster.Member }

// Heads implements [audit.HeadTable].
func (t headTable) Heads(ctx context.Context) (list []audit.Head, err error) {
	found, err := t.member.AuditHeads(ctx)
	for _, h := range found {
		list = append(list, audit.Head(h))
	}
	return list, err
}

// KeepHead implements [audit.HeadTable].
func (t headTable) KeepHead(ctx context.Context, h audit.Head) error {
	return t.member.KeepAuditHead(ctx, cluster.AuditHead(h))
}

// shareAudit names the host in its audit log, and exchanges heads with the other hosts' logs.
func (h *Host) shareAudit() error {
	if h.member == nil {
		return nil
	}
	name, err := datadir.AuditName(h.opt.DataDir)
	if err != nil {
		return err
	}
	h.heads = audit.NewHeadExchange(h.audit, headTable{h.member}, name)
	return h.audit.Record(audit.Entry{Act: audit.ActJoin, Outcome: audit.Done, Target: name, Reason: "the other hosts reach this one at " + h.opt.Config.Cluster.Advertise})
}

// exchangeHeads exchanges heads of audit logs with the other hosts until ctx ends.
func (h *Host) exchangeHeads(ctx context.Context) {
	if h.heads != nil {
		h.heads.Run(ctx)
	}
}

// finishHeads makes the last head of the audit log known. It gives the server half of leaveTime.
func (h *Host) finishHeads() {
	if h.heads == nil || !h.recorded {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), leaveTime/2)
	defer stop()
	if err := h.heads.Finish(ctx); err != nil {
		h.log.Warn("the other hosts do not get the last head of the audit log", "err", err)
	}
}
