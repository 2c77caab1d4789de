//! In which forms something is shown, and where each goes.

use std::path::PathBuf;
use std::str::FromStr;

use clap::ValueEnum;

/// A form, and the file for it; none is standard output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormOutput<F> {
    pub form: F,
    pub file: Option<PathBuf>,
}

impl<F: ValueEnum> FromStr for FormOutput<F> {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (word, file) = match text.split_once('=') {
            Some((_, "")) => return Err("name a file behind the `=`".to_owned()),
            Some((word, file)) => (word, Some(PathBuf::from(file))),
            None => (text, None),
        };
        let Ok(form) = F::from_str(word, false) else {
            let all = F::value_variants().iter().filter_map(ValueEnum::to_possible_value);
            let all: Vec<String> = all.map(|value| value.get_name().to_owned()).collect();
            return Err(format!("there are {}", all.join(", ")));
        };
        Ok(Self { form, file })
    }
}
