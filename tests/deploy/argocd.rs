//! Argo CD runs a Lua script per kind, with the object as the global `obj`; the script returns `status` and `message`.

use mlua::{Lua, LuaOptions, LuaSerdeExt, StdLib, Table};

use super::{Sample, documents, read};

#[test]
fn health_in_argo_cd() {
    let config = documents(&read("argocd/argocd-cm.yaml")).remove(0);
    let samples = Sample::all();
    for sample in &samples {
        let (group, kind) = sample.group_and_kind();
        let key = format!("resource.customizations.health.{group}_{kind}");
        let script = config["data"][&key].as_str().unwrap_or_else(|| panic!("argocd-cm.yaml has no {key}"));
        assert_eq!(health(script, sample), sample.health, "{:#}", sample.object);
    }
    // Every script is tried.
    for key in config["data"].as_object().unwrap().keys() {
        let kind = key.rsplit('_').next().unwrap();
        assert!(samples.iter().any(|sample| sample.object["kind"] == kind), "health.yaml has no {kind}");
    }
}

fn health(script: &str, sample: &Sample) -> String {
    // No libraries but the basic functions, as there.
    let lua = Lua::new_with(StdLib::NONE, LuaOptions::default()).unwrap();
    lua.globals().set("obj", lua.to_value(&sample.object).unwrap()).unwrap();
    let health: Table = lua.load(script).eval().unwrap_or_else(|error| panic!("{error}\n{:#}", sample.object));
    let _message: String = health.get("message").unwrap();
    health.get("status").unwrap()
}
