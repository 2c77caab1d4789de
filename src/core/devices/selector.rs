//! CEL expressions that say which devices will do. Source: the environment of
//! k8s.io/dynamic-resource-allocation/cel, release 1.34: `device.driver`, `device.attributes`, `device.capacity`.

use std::collections::{BTreeMap, HashMap};

use k8s_openapi::api::resource::v1::DeviceAttribute;
use kube_cel::KubeCelExt;
use kube_cel::cel::{Context, Program, Value};

use super::slices::Device;

/// Expressions that are longer, deeper or loop more are refused: they come from a file, and must not take the stack or the day.
const LENGTH_MAX: usize = 4096;
const DEPTH_MAX: usize = 24;
const LOOPS_MAX: usize = 2;
const LOOPS: [&str; 5] = [".all(", ".exists(", ".exists_one(", ".map(", ".filter("];

#[derive(Debug)]
pub struct Selector {
    program: Program,
    /// Texts in the expression. A domain that a device has nothing of is there all the same, and empty.
    texts: Vec<String>,
}

impl Selector {
    /// The error says what is wrong with the expression.
    pub fn new(expression: &str) -> Result<Self, String> {
        let loops: usize = LOOPS.iter().map(|name| expression.matches(name).count()).sum();
        if expression.len() > LENGTH_MAX || depth(expression) > DEPTH_MAX || loops > LOOPS_MAX {
            return Err("it is longer or deeper than is evaluated".to_owned());
        }
        let program = Program::compile(expression).map_err(|error| {
            // What follows the first line draws the place.
            let text = error.to_string();
            let first = text.lines().next().unwrap_or_default();
            format!("`{expression}` can not be read: {}", first.trim_start_matches("ERROR: <input>:"))
        })?;
        Ok(Self { program, texts: texts(expression) })
    }

    /// Whether the device will do; an error where the expression stumbles over what the device has not, or is no yes or no.
    pub fn matches(&self, device: &Device) -> Result<bool, String> {
        let mut context = Context::default().with_all();
        let device = self.value(device, &context)?;
        context.add_variable_from_value("device", device);
        match self.program.execute(&context) {
            Ok(Value::Bool(matches)) => Ok(matches),
            Ok(_) => Err("a device selector gives neither true nor false".to_owned()),
            Err(error) => Err(format!("a device selector can not be evaluated: {error}")),
        }
    }

    fn value(&self, device: &Device, context: &Context<'_>) -> Result<Value, String> {
        let mut attributes: BTreeMap<&str, HashMap<String, Value>> = BTreeMap::new();
        let mut capacity: BTreeMap<&str, HashMap<String, Value>> = BTreeMap::new();
        for text in &self.texts {
            attributes.entry(text).or_default();
            capacity.entry(text).or_default();
        }
        for (name, attribute) in &device.attributes {
            let (domain, name) = device.qualified(name);
            attributes.entry(domain).or_default().insert(name.to_owned(), attribute_value(attribute, context)?);
        }
        for (name, amount) in &device.capacity {
            let (domain, name) = device.qualified(name);
            let amount = call("quantity(text)", amount, context)?;
            capacity.entry(domain).or_default().insert(name.to_owned(), amount);
        }
        let nested = |map: BTreeMap<&str, HashMap<String, Value>>| -> Value {
            let map: HashMap<String, Value> =
                map.into_iter().map(|(key, values)| (key.to_owned(), Value::from(values))).collect();
            Value::from(map)
        };
        let device: HashMap<String, Value> = HashMap::from([
            ("driver".to_owned(), Value::from(device.name.driver.as_str())),
            ("allowMultipleAllocations".to_owned(), Value::Bool(false)),
            ("attributes".to_owned(), nested(attributes)),
            ("capacity".to_owned(), nested(capacity)),
        ]);
        Ok(Value::from(device))
    }
}

fn attribute_value(attribute: &DeviceAttribute, context: &Context<'_>) -> Result<Value, String> {
    match attribute {
        DeviceAttribute { bool: Some(value), .. } => Ok(Value::Bool(*value)),
        DeviceAttribute { int: Some(value), .. } => Ok(Value::Int(*value)),
        DeviceAttribute { string: Some(value), .. } => Ok(Value::from(value.as_str())),
        DeviceAttribute { version: Some(value), .. } => call("semver(text)", value, context),
        _ => Ok(Value::Null),
    }
}

/// What a function of Kubernetes makes of a text.
fn call(expression: &str, text: &str, context: &Context<'_>) -> Result<Value, String> {
    let program = Program::compile(expression).map_err(|error| error.to_string())?;
    let mut inner = context.new_inner_scope();
    inner.add_variable_from_value("text", text);
    program.execute(&inner).map_err(|error| format!("a device says `{text}`: {error}"))
}

/// How deep brackets and choices are nested, at most.
fn depth(expression: &str) -> usize {
    let (mut now, mut most, mut choices) = (0_usize, 0, 0);
    for character in expression.chars() {
        match character {
            '(' | '[' | '{' => now += 1,
            ')' | ']' | '}' => now = now.saturating_sub(1),
            '?' => choices += 1,
            _ => {}
        }
        most = most.max(now);
    }
    most + choices
}

/// Every text between quotes of one kind; a quote of the other kind within ends none.
fn texts(expression: &str) -> Vec<String> {
    let mut texts = Vec::new();
    let mut rest = expression;
    while let Some((_, after)) = rest.split_once(['"', '\'']) {
        let before = rest.strip_suffix(after).unwrap_or_default();
        let Some((text, next)) = before.chars().next_back().and_then(|quote| after.split_once(quote)) else { break };
        texts.push(text.to_owned());
        rest = next;
    }
    texts
}
