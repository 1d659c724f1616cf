package mail

// Indexes of an envelope's fields in its shape.
const (
	envID = iota
	envTimestamp
	envType
	envMessage
)

var (
	envelopeShape = &shape{required: 4, keys: []string{"id", "timestamp", "msg_type", "message"}}
	addressShape  = &shape{required: 2, keys: []string{"address_type", "address"}}
)

func (s *scanner) message(m *Message) error {
	var p bound
	err := s.object(envelopeShape, func(field int) (err error) {
		switch field {
		case envID:
			m.ID, err = s.text()
		case envTimestamp:
			m.Timestamp, err = s.timestamp()
		case envType:
			m.Type, err = s.msgType()
		case envMessage:
			err = p.read(s, m.Type, &m.Payload)
		}
		return err
	})
	if err != nil {
		return err
	}
	return under("message", p.late(m.Type, &m.Payload))
}

func (s *scanner) interswarm(w *Interswarm) error {
	var p bound
	err := s.object(interswarmShape, func(field int) (err error) {
		switch field {
		case wrapMessageID:
			w.MessageID, err = s.text()
		case wrapSource:
			w.SourceSwarm, err = s.text()
		case wrapTarget:
			w.TargetSwarm, err = s.text()
		case wrapTimestamp:
			w.Timestamp, err = s.timestamp()
		case wrapType:
			w.Type, err = s.msgType()
		case wrapOwner:
			w.TaskOwner, err = s.text()
		case wrapContributors:
			w.TaskContributors, err = s.texts()
		case wrapPayload:
			err = p.read(s, w.Type, &w.Payload)
		case wrapAuthToken:
			w.AuthToken, err = s.text()
		case wrapMetadata:
			if w.Metadata, err = s.rawObject(); len(w.Metadata) == len("{}") {
				w.Metadata = nil
			}
		}
		return err
	})
	if err != nil {
		return err
	}
	return under("payload", p.late(w.Type, &w.Payload))
}

// bound reads a payload whose shape depends on a msg_type that may stand behind
// it: then the payload is passed over at first and read at the end.
type bound struct{ at scanner }

func (b *bound) read(s *scanner, t Type, p *Payload) error {
	if t != "" {
		return s.payload(kindOf(t), p)
	}
	b.at = *s
	return s.skip()
}

func (b *bound) late(t Type, p *Payload) error {
	if b.at.src == "" {
		return nil
	}
	return b.at.payload(kindOf(t), p)
}

// utc is the zone of a timestamp that names none.
const utc = "+00:00"

func (s *scanner) timestamp() (string, error) {
	t, err := s.text()
	if !s.opts.LooseTimes {
		return t, err
	}
	if looksLike(t, "dddd-dd-dd ") {
		t = t[:len("dddd-dd-dd")] + "T" + t[len("dddd-dd-dd "):]
	}
	if _, ok := parseTime(t + utc); ok {
		t += utc
	}
	return t, err
}

func (s *scanner) msgType() (Type, error) {
	t, err := s.text()
	if err == nil && !Type(t).Valid() {
		return "", faultf("", "must be request, response, broadcast, interrupt or broadcast_complete")
	}
	return Type(t), err
}

func (s *scanner) payload(k *kind, p *Payload) error {
	return s.object(&k.shape, func(field int) (err error) {
		switch field {
		case fieldTaskID:
			p.TaskID, err = s.text()
		case fieldID:
			p.ID, err = s.text()
		case fieldSender:
			p.Sender, err = s.address()
		case fieldRecipients:
			p.Recipients, err = s.recipients(k.many)
		case fieldSubject:
			p.Subject, err = s.text()
		case fieldBody:
			p.Body, err = s.text()
		case fieldSenderSwarm:
			p.SenderSwarm, err = s.text()
		case fieldRecipientSwarms:
			p.RecipientSwarms, err = s.swarms(k.many)
		case fieldRoutingInfo:
			p.RoutingInfo, err = s.rawObject()
		}
		return err
	})
}

func (s *scanner) address() (Address, error) {
	var a Address
	err := s.object(addressShape, func(field int) error {
		t, err := s.text()
		if field == 0 {
			a.Type = AddressType(t)
		} else {
			a.Name = t
		}
		return err
	})
	return a, err
}

func (s *scanner) recipients(many bool) ([]Address, error) {
	if !many {
		a, err := s.address()
		return []Address{a}, err
	}
	var list []Address
	err := s.array(func(i int) error {
		if i == s.opts.Limits.Recipients {
			return s.full()
		}
		a, err := s.address()
		list = append(list, a)
		return err
	})
	return list, err
}

func (s *scanner) swarms(many bool) ([]string, error) {
	if many {
		return s.texts()
	}
	t, err := s.text()
	if t == "" {
		return nil, err
	}
	return []string{t}, err
}

func (s *scanner) texts() ([]string, error) {
	var list []string
	err := s.array(func(i int) error {
		if i == s.opts.Limits.Recipients {
			return s.full()
		}
		t, err := s.text()
		list = append(list, t)
		return err
	})
	return list, err
}

func (s *scanner) full() error {
	return limitf("", "is one more than the %d entries that are taken", s.opts.Limits.Recipients)
}
