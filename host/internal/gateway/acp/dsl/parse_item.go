package dsl

var itemWords = []string{string(TypeItem), string(EnumItem), string(SemanticsItem), string(ImportItem)}

// item reads one item, nil after a fault.
func (p *parser) item() *Item {
	it, mark := p.items.add(Item{Comments: p.leadingComments()}), len(p.stray)
	if p.recovering(func() { p.declaration(it) }) {
		p.attachComments(&it.Comments, mark)
		return it
	}
	for !p.is(tokenEnd) && !p.beginsItem() {
		p.skipToken()
	}
	return nil
}

// beginsItem looks for the word of an item with what follows it: a field may have the
// same name, but a colon follows that.
func (p *parser) beginsItem() bool {
	if p.is('@') {
		return p.tok.Col == 1
	}
	if !p.is(tokenName) {
		return false
	}
	rest := lexer{text: p.lexer.text, offset: p.lexer.offset, at: p.lexer.at, fail: func(Pos, int, string, ...any) bool { return true }}
	var next token
	switch ItemKind(p.tok.text) {
	case TypeItem, EnumItem, SemanticsItem:
		rest.next(&next)
		return next.kind == tokenName
	case ImportItem:
		rest.next(&next)
		return next.kind == tokenString
	}
	return false
}

func (p *parser) declaration(it *Item) {
	p.count()
	it.Annotations = p.annotations()
	if !p.is(tokenName) {
		p.expected(`"type", "enum", "semantics" or "import"`, "")
	}
	switch ItemKind(p.tok.text) {
	case TypeItem:
		p.advance()
		it.Name = p.name("the name of the type")
		p.expect('=', `"="`)
		p.declares = true
		it.Type = p.typeExpr()
	case EnumItem:
		p.advance()
		it.Name = p.name("the name of the enum")
		p.expect('{', `"{"`)
		p.declares = true
		it.Enum = p.values()
	case SemanticsItem:
		p.advance()
		it.Name = p.name("the value that is answered")
		it.Semantics = p.semantics()
	case ImportItem:
		p.advance()
		it.Name = p.expect(tokenString, `the file to import, as "name.acp",`)
		it.Name.Text, _ = unquote(it.Name.Text) // the lexer has reported what is wrong with it
	default:
		p.expected(`"type", "enum", "semantics" or "import"`, suggestion(p.tok.text, itemWords, otherWords))
	}
}

func (p *parser) values() *EnumExpr {
	e := &EnumExpr{}
	e.Tail = p.separated('}', `"," or "}"`, func() **Comments {
		p.count()
		v := Value{Comments: p.leadingComments()}
		v.openBlock(len(e.Values) == 0)
		v.Name = p.name("a value")
		e.Values = append(e.Values, v)
		return &e.Values[len(e.Values)-1].Comments
	})
	return e
}

func (p *parser) semantics() *SemanticsExpr {
	if !p.is(tokenName) || p.tok.text != "expects" {
		p.expected(`"expects"`, suggestion(p.tok.text, []string{"expects"}, otherVerbs))
	}
	p.advance()
	s := &SemanticsExpr{Answer: p.name(`the value that answers, or "nothing",`)}
	if !p.accept('{') {
		return s
	}
	for {
		p.count()
		s.Carries = append(s.Carries, p.name("the name of a field"))
		if p.accept('}') {
			return s
		}
		p.expect(',', `"," or "}"`)
	}
}

func (p *parser) annotations() (all []Annotation) {
	for p.is('@') {
		at := p.advance().Pos
		p.count()
		if p.tok.offset != at.offset+1 && p.beginsItem() {
			p.fail(at, 1, "the name of an annotation stands right behind its @, as in @open")
			return all
		}
		a := Annotation{Name: p.name("the name of an annotation")}
		if p.accept('(') {
			for !p.is(')') {
				a.Args = append(a.Args, p.argument())
				if !p.accept(',') && !p.is(')') {
					p.expected(`"," or ")"`, "")
				}
			}
			p.advance()
		}
		all = append(all, a)
	}
	return all
}

func (p *parser) argument() (a Argument) {
	p.count()
	if p.is(tokenName) {
		name := p.advance().Text
		if !p.accept('=') {
			return Argument{Value: name}
		}
		a.Key = name
	}
	switch p.tok.kind {
	case tokenName, tokenNumber, tokenString:
		a.Value = p.advance().Text
	default:
		p.expected("a text, a number or a name", "")
	}
	return a
}

func (p *parser) typeExpr() *TypeExpr {
	p.enterType()
	t := p.types.add(TypeExpr{Pos: p.tok.Pos})
	switch {
	case p.is('{'):
		t.Record = p.record()
	case p.is(tokenName):
		t.Name = p.advance().Text
		if p.accept('<') {
			p.arguments(t)
		}
	default:
		p.expected(`a type or "{"`, "")
	}
	for p.is('?') {
		if t.Optional {
			p.fail(p.tok.Pos, 1, `one "?" is enough: what may be absent cannot be more absent`)
		}
		t.Optional = true
		p.acceptOptional()
	}
	p.depth--
	return t
}

// arguments reads what stands between < and >.
func (p *parser) arguments(t *TypeExpr) {
	for {
		p.count()
		t.Args = append(t.Args, p.typeExpr())
		if p.accept('>') {
			return
		}
		p.expect(',', `"," or ">"`)
	}
}

// record reads the fields up to the brace. A faulty field is left out.
func (p *parser) record() *RecordExpr {
	p.advance()
	r := &RecordExpr{}
	for !p.is('}') {
		f, mark := p.fields.add(FieldExpr{Comments: p.leadingComments()}), len(p.stray)
		f.openBlock(len(r.Fields) == 0)
		if !p.recovering(func() { p.field(f, mark) }) {
			p.skipField()
			continue
		}
		r.Fields = append(r.Fields, f)
	}
	r.Tail = p.takeComments()
	p.advance()
	return r
}

func (p *parser) field(f *FieldExpr, mark int) {
	p.count()
	f.Annotations = p.annotations()
	f.Name = p.name("the name of a field")
	if p.is('?') {
		p.fail(p.tok.Pos, 1, `a "?" stands behind the type of what may be absent, and not behind its name`)
		p.advance()
	}
	p.expect(':', `":"`)
	f.Type = p.typeExpr()
	p.attachComments(&f.Comments, mark)
	if p.acceptComma(&f.Comments, mark) {
		return
	}
	if p.is(tokenName) || p.is('@') {
		p.fail(p.tok.Pos, 1, `a "," is missing before this field`)
	} else if !p.is('}') {
		p.expected(`"," or "}"`, "")
	}
}

// skipField goes to where the next field begins, or unwinds to the next item.
func (p *parser) skipField() {
	for open := 0; ; p.skipToken() {
		if p.is(tokenEnd) || p.beginsItem() {
			panic(failed{})
		}
		switch p.tok.kind {
		case '{', '<', '(':
			open++
		case '}', '>', ')':
			if open == 0 && p.is('}') {
				return
			}
			open = max(open-1, 0)
		case ',':
			if open == 0 {
				p.skipToken()
				return
			}
		}
	}
}
