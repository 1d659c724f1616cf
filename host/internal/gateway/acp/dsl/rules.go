package dsl

// rules resolves the semantics of all files.
func (r *resolver) rules(files []parsed) {
	s := &semantics{resolver: r, enums: map[string][]*Type{}, holders: map[*Type]*Type{}, ruled: map[string]bool{}}
	for _, t := range r.schema.Types {
		for _, v := range t.Values {
			s.enums[v.Name] = append(s.enums[v.Name], t)
		}
		for _, f := range t.Fields {
			if enum := f.Type.Plain(); enum.Kind == Enum && s.holders[enum] == nil {
				s.holders[enum] = t
			}
		}
	}
	for _, f := range files {
		r.source = f.source
		for _, it := range f.tree.Items {
			if it.Semantics != nil {
				s.rule(it)
			}
		}
	}
}

// semantics finds what rules name.
type semantics struct {
	*resolver
	enums   map[string][]*Type // that have a value
	holders map[*Type]*Type    // the first record that has a field of an enum
	ruled   map[string]bool
}

func (s *semantics) rule(it *Item) {
	enums, expects := s.enums[it.Name.Text], it.Semantics
	switch {
	case len(enums) == 0:
		s.suggest(s.failWord(it.Name, "no enum has the value %s", clip(it.Name.Text)), it.Name.Text, s.values)
		return
	case len(enums) > 1:
		s.failWord(it.Name, "both %s and %s have a value %s", enums[0].Name, enums[1].Name, clip(it.Name.Text))
		return
	case s.ruled[it.Name.Text]:
		s.failWord(it.Name, "what %s expects is there already", clip(it.Name.Text))
		return
	}
	s.ruled[it.Name.Text] = true
	rule := Rule{Enum: enums[0], On: it.Name.Text}
	switch {
	case expects.Answer.Text == Nothing && len(expects.Carries) > 0:
		s.failWord(expects.Carries[0], "no answer is expected, so none carries a field")
	case expects.Answer.Text == Nothing:
	case !rule.Enum.has(expects.Answer.Text):
		f := s.failWord(expects.Answer, "%s has no value %s", rule.Enum.Name, clip(expects.Answer.Text))
		s.suggest(f, expects.Answer.Text, func() []string { return append(rule.Enum.valueNames(), Nothing) })
	default:
		rule.Answer = expects.Answer.Text
		rule.Carries = s.carries(rule.Enum, expects.Carries)
	}
	s.schema.Rules = append(s.schema.Rules, rule)
}

func (s *semantics) values() (names []string) {
	for _, t := range s.schema.Types {
		names = append(names, t.valueNames()...)
	}
	return names
}

// carries checks the fields that an answer has from what it answers.
func (s *semantics) carries(enum *Type, words []Word) (names []string) {
	record := s.holders[enum]
	for _, w := range words {
		switch {
		case record == nil:
			s.failWord(w, "no record has a field of type %s, so no answer carries one", enum.Name)
		case record.field(w.Text) == nil:
			s.suggest(s.failWord(w, "%s has no field %s", record.Name, clip(w.Text)), w.Text, record.fieldNames)
		default:
			names = append(names, w.Text)
		}
	}
	return names
}

func (t *Type) has(value string) bool {
	for _, v := range t.Values {
		if v.Name == value {
			return true
		}
	}
	return false
}

func (t *Type) valueNames() (names []string) {
	for _, v := range t.Values {
		names = append(names, v.Name)
	}
	return names
}

func (t *Type) field(name string) *Field {
	for i := range t.Fields {
		if t.Fields[i].Name == name {
			return &t.Fields[i]
		}
	}
	return nil
}

func (t *Type) fieldNames() (names []string) {
	for _, f := range t.Fields {
		names = append(names, f.Name)
	}
	return names
}
