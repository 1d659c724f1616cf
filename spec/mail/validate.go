package mail

import "unicode/utf8"

// Validate returns a *[FieldError] unless m has a JSON form that the message
// schema takes. Limits are no matter of validity.
func (m Message) Validate() error {
	if err := m.check(); err != nil {
		return err
	}
	return under("message", m.Payload.checkTexts(kindOf(m.Type)))
}

// Validate returns a *[FieldError] unless w has a JSON form that the wrapper
// schema takes.
func (w Interswarm) Validate() error {
	if err := w.check(); err != nil {
		return err
	}
	if err := w.checkTexts(); err != nil {
		return err
	}
	return under("payload", w.Payload.checkTexts(kindOf(w.Type)))
}

// check holds the rules about values; the parser, which has seen to the text and
// the presence of fields itself, needs no others.
func (m *Message) check() error {
	if !ValidUUID(m.ID) {
		return faultf("id", "must be a UUID")
	}
	if err := checkTime(m.Timestamp); err != nil {
		return err
	}
	k := kindOf(m.Type)
	if k == nil {
		return faultf("msg_type", "must be request, response, broadcast, interrupt or broadcast_complete")
	}
	return under("message", m.Payload.check(k))
}

func (w *Interswarm) check() error {
	switch {
	case w.MessageID == "":
		return faultf("message_id", "must not be empty")
	case w.SourceSwarm == "":
		return faultf("source_swarm", "must not be empty")
	case w.TargetSwarm == "":
		return faultf("target_swarm", "must not be empty")
	case w.TaskOwner == "":
		return faultf("task_owner", "must not be empty")
	}
	if err := checkTime(w.Timestamp); err != nil {
		return err
	}
	k := kindOf(w.Type)
	if k == nil || !k.abroad {
		return faultf("msg_type", "must be request, response, broadcast or interrupt")
	}
	return under("payload", w.Payload.check(k))
}

func checkTime(s string) error {
	if _, ok := parseTime(s); !ok {
		return faultf("timestamp", "must be an RFC 3339 date-time")
	}
	return nil
}

func (p *Payload) check(k *kind) error {
	if !ValidTaskID(p.TaskID) {
		return faultf("task_id", "must be 1 to %d printable characters", MaxTaskID)
	}
	if !k.anyID && !ValidUUID(p.ID) {
		return faultf(k.keys[fieldID], "must be a UUID")
	}
	if err := p.Sender.check(); err != nil {
		return under("sender", err)
	}
	if err := p.checkRecipients(k); err != nil {
		return under(k.keys[fieldRecipients], err)
	}
	if !k.many && len(p.RecipientSwarms) > 1 {
		return faultf("recipient_swarm", "must be at most one")
	}
	return nil
}

func (p *Payload) checkRecipients(k *kind) error {
	if !k.many {
		if len(p.Recipients) != 1 {
			return faultf("", "must be exactly one")
		}
		return p.Recipients[0].check()
	}
	if len(p.Recipients) == 0 {
		return faultf("", "must not be empty")
	}
	for i := range p.Recipients {
		if err := p.Recipients[i].check(); err != nil {
			return under(index(i), err)
		}
	}
	return nil
}

// checkTexts holds the rules that the scanner has enforced for parsed values.
func (p *Payload) checkTexts(k *kind) error {
	err := firstError(
		checkText(k.keys[fieldID], p.ID),
		under("sender", checkText("address", p.Sender.Name)),
		checkText("subject", p.Subject),
		checkText("body", p.Body),
		checkText("sender_swarm", p.SenderSwarm),
		checkRaw("routing_info", p.RoutingInfo),
	)
	if err != nil {
		return err
	}
	for i, a := range p.Recipients {
		if err := checkText("address", a.Name); err != nil {
			return under(k.keys[fieldRecipients], under(index(i), err))
		}
	}
	for i, s := range p.RecipientSwarms {
		if err := checkText(index(i), s); err != nil {
			return under(k.keys[fieldRecipientSwarms], err)
		}
	}
	return nil
}

func (w *Interswarm) checkTexts() error {
	err := firstError(
		checkText("message_id", w.MessageID),
		checkText("source_swarm", w.SourceSwarm),
		checkText("target_swarm", w.TargetSwarm),
		checkText("task_owner", w.TaskOwner),
		checkText("auth_token", w.AuthToken),
		checkRaw("metadata", w.Metadata),
	)
	if err != nil {
		return err
	}
	for i, s := range w.TaskContributors {
		if err := checkText(index(i), s); err != nil {
			return under("task_contributors", err)
		}
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func checkText(path, s string) error {
	if !utf8.ValidString(s) {
		return faultf(path, "is not valid UTF-8")
	}
	return nil
}

// checkRaw takes nothing, or one JSON object of any depth that can be read back.
func checkRaw(path string, raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	opts := ParseOptions{Limits: Limits{Bytes: len(raw), Depth: deepest}}
	s, err := opts.scanner(raw)
	if err == nil && s.peek() != '{' {
		err = s.wrong("an object")
	}
	if err == nil {
		err = s.skip()
	}
	if err == nil {
		err = s.end()
	}
	return under(path, err)
}
