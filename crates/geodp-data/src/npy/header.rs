//! The Python dictionary at the head of an NPY file, as far as plain arrays need it.
//!
//! `{'descr': '<f4', 'fortran_order': False, 'shape': (60000, 784), }`: three keys in any order,
//! with values that are a string, a boolean and a tuple of integers. A structured type (a list in
//! place of the string) is not read.

/// What the dictionary says.
#[derive(Debug, PartialEq)]
pub(super) struct Header {
    pub(super) descr: String,
    pub(super) fortran_order: bool,
    pub(super) dims: Vec<usize>,
}

/// Reads the dictionary; `None` for anything else.
pub(super) fn parse(text: &str) -> Option<Header> {
    let mut rest = Rest(text.trim_end());
    let (mut descr, mut fortran_order, mut dims) = (None, None, None);
    rest.token("{")?;
    while rest.token("}").is_none() {
        let key = rest.string()?;
        rest.token(":")?;
        match key {
            "descr" => descr = Some(rest.string()?.to_owned()),
            "fortran_order" => fortran_order = Some(rest.boolean()?),
            "shape" => dims = Some(rest.tuple()?),
            _ => return None,
        }
        if rest.token(",").is_none() && !rest.0.trim_start().starts_with('}') {
            return None;
        }
    }
    let ended = rest.0.trim().is_empty();
    let header = Header { descr: descr?, fortran_order: fortran_order?, dims: dims? };
    ended.then_some(header)
}

/// The text that is still to be read.
struct Rest<'a>(&'a str);

impl<'a> Rest<'a> {
    fn token(&mut self, token: &str) -> Option<()> {
        self.0 = self.0.trim_start().strip_prefix(token)?;
        Some(())
    }

    fn string(&mut self) -> Option<&'a str> {
        let text = self.0.trim_start();
        let quote = text.chars().next().filter(|&c| c == '\'' || c == '"')?;
        let (string, rest) = text[1..].split_once(quote)?;
        self.0 = rest;
        Some(string)
    }

    fn boolean(&mut self) -> Option<bool> {
        match self.token("True") {
            Some(()) => Some(true),
            None => self.token("False").map(|()| false),
        }
    }

    fn tuple(&mut self) -> Option<Vec<usize>> {
        self.token("(")?;
        let (inside, rest) = self.0.split_once(')')?;
        self.0 = rest;
        let inside = inside.trim();
        let inside = inside.strip_suffix(',').unwrap_or(inside);
        if inside.trim().is_empty() {
            return Some(Vec::new());
        }
        // Python 2 wrote long integers with an L.
        inside.split(',').map(|size| size.trim().trim_end_matches('L').parse().ok()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_numpy_writes_are_read() {
        let header = parse("{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }    \n");
        let expected = Header { descr: "<f4".to_owned(), fortran_order: false, dims: vec![3, 4] };
        assert_eq!(header, Some(expected));
        let one = parse("{'shape': (7,), \"fortran_order\": True, 'descr': '|u1'}").unwrap();
        assert_eq!((one.dims, one.fortran_order), (vec![7], true));
        assert_eq!(parse("{'descr':'<i8','fortran_order':False,'shape':()}").unwrap().dims, []);
        assert_eq!(parse("{'descr':'<i8','fortran_order':False,'shape':(5L,)}").unwrap().dims, [5]);
    }

    #[test]
    fn anything_else_is_not() {
        for text in [
            "",
            "{",
            "{}",
            "{'descr': '<f4', 'fortran_order': False}",
            "{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': 0, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (-3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3 4)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}",
            "{'descr': '<f4' 'fortran_order': False, 'shape': (3,)}",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,)} x",
            "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), 'more': 1}",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
