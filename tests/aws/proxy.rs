//! A server between the SDK and moto: it records calls, loses answers, throttles, denies, decides what there is capacity for, remembers client
//! tokens, answers what moto does not know, and gives instances the security groups of their template, which moto loses. Signatures are not
//! looked at.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// One call of the SDK.
#[derive(Clone, Debug)]
pub struct Call {
    /// `CreateFleet`
    pub action: String,
    /// When it came.
    pub at: Instant,
    /// Of a form, decoded; empty for JSON.
    pub fields: BTreeMap<String, String>,
    pub body: String,
}

/// What happens to a call.
#[derive(Clone, Debug)]
pub enum Fault {
    /// Moto does what was asked for, and nobody hears of it.
    LosesAnswer,
    /// A refusal with this code.
    Refuses {
        status: u16,
        code: &'static str,
        message: &'static str,
    },
    Waits(Duration),
}

/// Instances of one fleet that are given the groups of their template.
const ATTACHED_MAX: usize = 100;

pub const THROTTLES: Fault =
    Fault::Refuses { status: 503, code: "RequestLimitExceeded", message: "Request limit exceeded." };
pub const DENIES: Fault = Fault::Refuses {
    status: 403,
    code: "UnauthorizedOperation",
    message: "You are not authorized to perform this operation.",
};

/// Calls apart from the rest: a fleet that moto makes holds nobody up who only comes.
#[derive(Default)]
struct Shared {
    calls: Mutex<Vec<Call>>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// By action: what happens to its next calls, one after the other.
    next: BTreeMap<String, VecDeque<Fault>>,
    /// By action: what happens to all of its calls.
    always: BTreeMap<String, Fault>,
    /// Instances that are left, by `TYPE ZONE`; any number of what is not named.
    capacity: BTreeMap<String, usize>,
    tokens: BTreeMap<String, (String, Vec<u8>)>,
    parameters: BTreeMap<String, String>,
    /// Security groups of the first interface, by the name of the launch template.
    groups: BTreeMap<String, Vec<String>>,
}

pub struct Proxy {
    pub address: String,
    shared: Arc<Shared>,
}

impl Proxy {
    /// Listens on loopback until the process ends. Everything of one proxy is in an account of its own.
    pub fn start(moto: &str, account: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let shared: Arc<Shared> = Arc::default();
        let (moto, account, of_thread) = (moto.to_owned(), account.to_owned(), shared.clone());
        std::thread::spawn(move || {
            for connection in listener.incoming().flatten() {
                let (moto, account, shared) = (moto.clone(), account.clone(), of_thread.clone());
                std::thread::spawn(move || serve(connection, &moto, &account, &shared));
            }
        });
        Self { address, shared }
    }

    pub fn next(&self, action: &str, faults: impl IntoIterator<Item = Fault>) {
        self.shared.state.lock().unwrap().next.entry(action.to_owned()).or_default().extend(faults);
    }

    pub fn always(&self, action: &str, fault: Fault) {
        self.shared.state.lock().unwrap().always.insert(action.to_owned(), fault);
    }

    pub fn heals(&self) {
        let mut state = self.shared.state.lock().unwrap();
        state.always.clear();
        state.next.clear();
    }

    pub fn has(&self, instance_type: &str, zone: &str, count: usize) {
        self.shared.state.lock().unwrap().capacity.insert(format!("{instance_type} {zone}"), count);
    }

    /// A parameter of the Systems Manager that moto does not have.
    pub fn parameter(&self, name: &str, value: &str) {
        self.shared.state.lock().unwrap().parameters.insert(name.to_owned(), value.to_owned());
    }

    /// The calls of an action since the last time.
    pub fn take(&self, action: &str) -> Vec<Call> {
        let mut calls = self.shared.calls.lock().unwrap();
        let (of_action, others) = std::mem::take(&mut *calls).into_iter().partition(|call| call.action == action);
        *calls = others;
        of_action
    }

    /// Calls by action, of all that were not taken.
    pub fn counts(&self) -> BTreeMap<String, usize> {
        let mut counts = BTreeMap::new();
        for call in self.shared.calls.lock().unwrap().iter() {
            *counts.entry(call.action.clone()).or_default() += 1;
        }
        counts
    }
}

/// A request as it came.
struct Request {
    line: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Request {
    /// `None` at the end of a connection.
    fn read(connection: &mut TcpStream) -> Option<Self> {
        let mut bytes = Vec::new();
        let mut buffer = [0; 16_384];
        let head = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end;
            }
            match connection.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(count) => bytes.extend_from_slice(&buffer[..count]),
            }
        };
        let text = String::from_utf8_lossy(&bytes[..head]).into_owned();
        let mut lines = text.lines();
        let line = lines.next()?.to_owned();
        let headers: Vec<(String, String)> = lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.trim().to_lowercase(), value.trim().to_owned()))
            .collect();
        let mut body = bytes.split_off(head + 4);
        let length: usize =
            headers.iter().find(|(name, _)| name == "content-length").map_or(0, |(_, value)| value.parse().unwrap());
        while body.len() < length {
            match connection.read(&mut buffer) {
                Ok(0) | Err(_) => return None,
                Ok(count) => body.extend_from_slice(&buffer[..count]),
            }
        }
        Some(Self { line, headers, body })
    }

    fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(it, _)| it == name).map_or("", |(_, value)| value)
    }

    fn call(&self) -> Call {
        let at = Instant::now();
        let body = String::from_utf8_lossy(&self.body).into_owned();
        let target = self.header("x-amz-target");
        if !target.is_empty() {
            let action = target.rsplit('.').next().unwrap().to_owned();
            return Call { action, at, fields: BTreeMap::new(), body };
        }
        let fields: BTreeMap<String, String> = form(&body);
        let action =
            fields.get("Action").cloned().unwrap_or_else(|| self.line.split(" HTTP").next().unwrap().to_owned());
        Call { action, at, fields, body }
    }

    /// What moto says, its status line included.
    fn forward(&self, moto: &str, account: &str, body: &[u8]) -> Vec<u8> {
        let mut connection = TcpStream::connect(moto).unwrap();
        let mut head = format!("{}\r\n", self.line);
        for (name, value) in &self.headers {
            if !["content-length", "connection", "x-moto-account-id"].contains(&name.as_str()) {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
        }
        head.push_str(&format!(
            "x-moto-account-id: {account}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            body.len()
        ));
        connection.write_all(head.as_bytes()).unwrap();
        connection.write_all(body).unwrap();
        let mut answer = Vec::new();
        let _ends = connection.read_to_end(&mut answer);
        answer
    }
}

fn serve(mut connection: TcpStream, moto: &str, account: &str, Shared { calls, state }: &Shared) {
    while let Some(request) = Request::read(&mut connection) {
        let call = request.call();
        calls.lock().unwrap().push(call.clone());
        let fault = {
            let mut state = state.lock().unwrap();
            let next = state.next.get_mut(&call.action).and_then(VecDeque::pop_front);
            next.or_else(|| state.always.get(&call.action).cloned())
        };
        match &fault {
            Some(Fault::Refuses { status, code, message }) => {
                let is_json = !request.header("x-amz-target").is_empty();
                let _gone = connection.write_all(&refusal(is_json, *status, code, message));
                return;
            }
            Some(Fault::Waits(time)) => std::thread::sleep(*time),
            Some(Fault::LosesAnswer) | None => {}
        }
        let answer = answer(&request, &call, moto, account, state);
        if matches!(fault, Some(Fault::LosesAnswer)) {
            return;
        }
        // Moto closes each of its connections; so does this one.
        let _gone = connection.write_all(&answer);
        return;
    }
}

fn answer(request: &Request, call: &Call, moto: &str, account: &str, state: &Mutex<State>) -> Vec<u8> {
    let is_dry_run = call.fields.get("DryRun").is_some_and(|text| text == "true");
    match call.action.as_str() {
        "CreateLaunchTemplate" => {
            state.lock().unwrap().groups.insert(call.fields["LaunchTemplateName"].clone(), groups(call));
            request.forward(moto, account, &request.body)
        }
        "CreateFleet" if !is_dry_run => fleet(request, call, moto, account, state),
        // Moto launches nothing for a dry run, but says nothing either.
        "CreateFleet" => {
            refusal(false, 412, "DryRunOperation", "Request would have succeeded, but DryRun flag is set.")
        }
        "GetParameters" if call.body.contains("/aws/service/") => parameters(call, &state.lock().unwrap().parameters),
        _ => request.forward(moto, account, &request.body),
    }
}

/// EC2 launches from the first override that has capacity, and says of the others that they have none.
fn fleet(request: &Request, call: &Call, moto: &str, account: &str, state: &Mutex<State>) -> Vec<u8> {
    let mut state = state.lock().unwrap();
    let token = call.fields.get("ClientToken").cloned().unwrap_or_default();
    if let Some((body, answer)) = state.tokens.get(&token) {
        return match *body == call.body {
            true => answer.clone(),
            false => {
                refusal(false, 400, "IdempotentParameterMismatch", "The client token was used for another request.")
            }
        };
    }
    let count: usize = call.fields["TargetCapacitySpecification.TotalTargetCapacity"].parse().unwrap();
    let overrides = overrides(&call.fields);
    let left = |it: &Override| state.capacity.get(&it.key()).copied().unwrap_or(usize::MAX);
    let chosen = overrides.iter().find(|it| left(it) > 0).cloned();
    let none: String = overrides.iter().filter(|it| left(it) == 0).map(Override::error).collect();
    let answer = match chosen {
        None => whole(
            200,
            "text/xml",
            &format!(
                "<CreateFleetResponse xmlns=\"http://ec2.amazonaws.com/doc/2016-11-15/\"><requestId>r</requestId><fleetId>fleet-0</fleetId><fleetInstanceSet/><errorSet>{none}</errorSet></CreateFleetResponse>"
            ),
        ),
        Some(chosen) => {
            let launched = count.min(left(&chosen));
            if let Some(known) = state.capacity.get_mut(&chosen.key()) {
                *known -= launched;
            }
            let body = chosen.only(&call.fields, launched);
            let answer = String::from_utf8_lossy(&request.forward(moto, account, body.as_bytes())).into_owned();
            let template = &call.fields[&format!("{}.LaunchTemplateSpecification.LaunchTemplateName", chosen.config)];
            let groups = state.groups.get(template).map(Vec::as_slice).unwrap_or_default();
            // Moto would be held up for a minute by a thousand, and none of those is looked at for what it has.
            if launched <= ATTACHED_MAX {
                attach(groups, &answer, |body| request.forward(moto, account, body));
            }
            let short = if launched < count { chosen.error() } else { String::new() };
            let errors = format!("<errorSet>{none}{short}</errorSet>");
            rewritten(&answer, &errors, &chosen)
        }
    };
    state.tokens.insert(token, (call.body.clone(), answer.clone()));
    answer
}

/// Security groups of a launch template's first interface.
fn groups(call: &Call) -> Vec<String> {
    let is_group = |name: &str| name.starts_with("LaunchTemplateData.NetworkInterface.1.SecurityGroupId.");
    call.fields.iter().filter(|(name, _)| is_group(name)).map(|(_, id)| id.clone()).collect()
}

/// Gives the groups to each instance of an answer.
fn attach(groups: &[String], answer: &str, forward: impl Fn(&[u8]) -> Vec<u8>) {
    let instances = answer.split("<instanceIds>").skip(1).filter_map(|rest| rest.split_once("</instanceIds>"));
    let ids = instances.flat_map(|(ids, _)| ids.split("<item>").skip(1)).filter_map(|rest| rest.split_once("</item>"));
    for (id, _) in ids.filter(|_| !groups.is_empty()) {
        let mut fields = vec![
            ("Action".to_owned(), "ModifyInstanceAttribute".to_owned()),
            ("Version".to_owned(), "2016-11-15".to_owned()),
            ("InstanceId".to_owned(), id.trim().to_owned()),
        ];
        let numbered =
            groups.iter().enumerate().map(|(position, id)| (format!("GroupId.{}", position + 1), id.clone()));
        fields.extend(numbered);
        let said = forward(encoded(&fields).as_bytes());
        assert!(said.starts_with(b"HTTP/1.1 200"), "{}", String::from_utf8_lossy(&said));
    }
}

/// One override of a fleet, with the place of its template.
#[derive(Clone, Debug)]
struct Override {
    config: String,
    prefix: String,
    instance_type: String,
    zone: String,
    subnet: String,
}

fn overrides(fields: &BTreeMap<String, String>) -> Vec<Override> {
    let mut all: Vec<(f64, Override)> = Vec::new();
    for (name, instance_type) in
        fields.iter().filter(|(name, _)| name.contains(".Overrides.") && name.ends_with(".InstanceType"))
    {
        let prefix = name.trim_end_matches(".InstanceType");
        let field = |part: &str| fields.get(&format!("{prefix}.{part}")).cloned().unwrap_or_default();
        let config = prefix.split(".Overrides").next().unwrap().to_owned();
        let one = Override {
            config,
            prefix: prefix.to_owned(),
            instance_type: instance_type.clone(),
            zone: field("AvailabilityZone"),
            subnet: field("SubnetId"),
        };
        all.push((field("Priority").parse().unwrap_or(0.0), one));
    }
    all.sort_by(|one, other| one.0.total_cmp(&other.0));
    all.into_iter().map(|(_, one)| one).collect()
}

impl Override {
    fn key(&self) -> String {
        format!("{} {}", self.instance_type, self.zone)
    }

    /// As an entry of Errors.
    fn error(&self) -> String {
        let Self { instance_type, zone, subnet, .. } = self;
        format!(
            "<item><errorCode>InsufficientInstanceCapacity</errorCode><errorMessage>There is no Spot or on-demand capacity available.</errorMessage>\
             <launchTemplateAndOverrides><overrides><instanceType>{instance_type}</instanceType><availabilityZone>{zone}</availabilityZone>\
             <subnetId>{subnet}</subnetId></overrides></launchTemplateAndOverrides></item>"
        )
    }

    /// The request with this override alone.
    fn only(&self, fields: &BTreeMap<String, String>, count: usize) -> String {
        let mut kept: Vec<(String, String)> = Vec::new();
        for (name, value) in fields {
            if name == "TargetCapacitySpecification.TotalTargetCapacity" {
                kept.push((name.clone(), count.to_string()));
            } else if let Some(rest) = name.strip_prefix(&format!("{}.", self.prefix)) {
                kept.push((format!("LaunchTemplateConfigs.1.Overrides.1.{rest}"), value.clone()));
            } else if let Some(rest) = name.strip_prefix(&format!("{}.LaunchTemplateSpecification.", self.config)) {
                kept.push((format!("LaunchTemplateConfigs.1.LaunchTemplateSpecification.{rest}"), value.clone()));
            } else if !name.starts_with("LaunchTemplateConfigs.") {
                kept.push((name.clone(), value.clone()));
            }
        }
        encoded(&kept)
    }
}

/// Moto's answer with errors, and with the override that was launched.
fn rewritten(answer: &str, errors: &str, chosen: &Override) -> Vec<u8> {
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((answer, ""));
    if !head.starts_with("HTTP/1.1 200") && !head.starts_with("HTTP/1.0 200") {
        return answer.as_bytes().to_vec();
    }
    let Override { instance_type, zone, subnet, .. } = chosen;
    let launched = format!(
        "<launchTemplateAndOverrides><overrides><instanceType>{instance_type}</instanceType><availabilityZone>{zone}</availabilityZone>\
         <subnetId>{subnet}</subnetId></overrides></launchTemplateAndOverrides></item></fleetInstanceSet>"
    );
    let body = body.replace("</CreateFleetResponse>", &format!("{errors}</CreateFleetResponse>"));
    // Moto gives each instance an entry of its own; the override is added to the last, which is enough to see that it is read.
    let body = match body.rfind("</item></fleetInstanceSet>") {
        Some(_) => body.replacen("</item></fleetInstanceSet>", &launched, 1),
        None => body,
    };
    whole(200, "text/xml", &body)
}

fn parameters(call: &Call, known: &BTreeMap<String, String>) -> Vec<u8> {
    let asked: serde_json::Value = serde_json::from_str(&call.body).unwrap();
    let names: Vec<&str> = asked["Names"].as_array().unwrap().iter().filter_map(serde_json::Value::as_str).collect();
    let (found, missing): (Vec<&str>, Vec<&str>) = names.into_iter().partition(|name| known.contains_key(*name));
    let found: Vec<_> =
        found.iter().map(|name| serde_json::json!({ "Name": name, "Value": known[*name], "Type": "String" })).collect();
    let body = serde_json::json!({ "Parameters": found, "InvalidParameters": missing }).to_string();
    whole(200, "application/x-amz-json-1.1", &body)
}

/// A failure as the service writes it.
fn refusal(is_json: bool, status: u16, code: &str, message: &str) -> Vec<u8> {
    if is_json {
        let body = serde_json::json!({ "__type": code, "message": message }).to_string();
        return whole(status, "application/x-amz-json-1.1", &body);
    }
    let error = format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    whole(status, "text/xml", &format!("<Response><Errors>{error}</Errors><RequestID>r</RequestID></Response>"))
}

fn whole(status: u16, kind: &str, body: &str) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 {status} Said\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body.as_bytes()].concat()
}

/// The fields of a form.
pub fn form(body: &str) -> BTreeMap<String, String> {
    let decoded = |text: &str| {
        let text = text.replace('+', " ");
        percent_encoding::percent_decode_str(&text).decode_utf8_lossy().into_owned()
    };
    body.split('&')
        .filter_map(|field| field.split_once('='))
        .map(|(name, value)| (decoded(name), decoded(value)))
        .collect()
}

/// A form of fields.
pub fn encoded(fields: &[(String, String)]) -> String {
    let one = |text: &str| percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string();
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{}={}", one(name), one(value))).collect();
    fields.join("&")
}
