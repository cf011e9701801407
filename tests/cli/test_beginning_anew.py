"""A gateway begins anew if it can, and goes on as it is if it cannot; whoever asked is told which."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from gateway_there import There, gateway_at

pytestmark = pytest.mark.on_file

Run = Callable[..., "CompletedProcess[str]"]


@pytest.fixture(scope="module")
def there(tmp_path_factory: pytest.TempPathFactory) -> Iterator[There]:
    with gateway_at(tmp_path_factory.mktemp("there") / "home") as gateway:
        yield gateway


def test_a_gateway_that_can_begin_anew_does(there: There, run: Run) -> None:
    before = json.loads(run("gateway", "status", "--json", SEGUE_HOME=str(there.home)).stdout)[0]["id"]
    done = run("gateway", "restart", SEGUE_HOME=str(there.home))
    assert (done.returncode, done.stdout) == (0, "The gateway has begun anew.\n")
    after = json.loads(run("gateway", "status", "--json", SEGUE_HOME=str(there.home)).stdout)[0]["id"]
    assert after != before


def test_what_the_gateway_itself_lacks_keeps_it_as_it_is(there: There, run: Run) -> None:
    """The variable is set where somebody types, and not where the gateway runs."""
    hook = {"hooks": {"github": {"secret": "${HOOK_SECRET_OF_A_TEST}"}}, "port": 0}
    settings = {"gateway": {"port": 0}, "platforms": {"webhook": hook}}
    before = (there.home / "config.yaml").read_text()
    (there.home / "config.yaml").write_text(json.dumps(settings))
    secret = {"HOOK_SECRET_OF_A_TEST": "0123456789abcdef0123"}
    done = run("gateway", "restart", SEGUE_HOME=str(there.home), **secret)
    assert done.returncode == 1
    assert "goes on as it is" in done.stderr
    assert "HOOK_SECRET_OF_A_TEST" in done.stderr
    assert run("gateway", "call", "health", SEGUE_HOME=str(there.home), **secret).returncode == 0
    (there.home / "config.yaml").write_text(before)


def test_a_batch_is_not_used_up_by_a_gateway_without_a_model(there: There, run: Run, tmp_path: Path) -> None:
    prompts = tmp_path / "prompts.jsonl"
    prompts.write_text('{"prompt": "one"}\n{"prompt": "two"}\n')
    done = run("batch", "run", str(prompts), "--out", "-", SEGUE_HOME=str(there.home))
    assert done.returncode == 1
    results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [one["state"] for one in results] == ["failed", "failed"]
    assert "There is no model" in results[0]["error"]


def test_what_cannot_be_connected_is_left_out_and_the_rest_begins(tmp_path: Path, run: Run) -> None:
    """It is said why, in the log and by the check; and a gateway that lacks it can begin anew all the same."""
    named = {
        "telegram": {"token": "${A_TOKEN_THAT_NOBODY_SET}"},
        "carrier_pigeon": {},
        "webhook": {"port": 0, "hooks": {"github": {"secret": "0123456789abcdef0123"}}},
    }
    with gateway_at(tmp_path / "home", platforms=named) as there:
        environment = {"SEGUE_HOME": str(there.home)}
        assert "telegram is left out: platforms.telegram needs the environment variable" in there.log
        assert "carrier_pigeon is left out: platforms.carrier_pigeon in config.yaml is no platform" in there.log
        assert run("config", "check", **environment).returncode == 1
        facts = json.loads(run("status", "--json", **environment).stdout)
        assert "webhook" in {one["platform"] for one in facts["gateway"]["platforms"]}
        assert "telegram is left out: platforms.telegram needs" in run("status", **environment).stdout
        done = run("gateway", "restart", **environment)
        assert (done.returncode, done.stdout) == (0, "The gateway has begun anew.\n")
        assert "telegram is left out: platforms.telegram needs" in done.stderr


def test_whoever_asks_for_it_need_not_have_what_the_gateway_has(tmp_path: Path, run: Run) -> None:
    """A service has its variables from a file that no shell reads."""
    hook = {"hooks": {"github": {"secret": "${HOOK_SECRET_OF_A_TEST}"}}, "port": 0}
    os.environ["HOOK_SECRET_OF_A_TEST"] = "0123456789abcdef0123"
    try:
        with gateway_at(tmp_path / "home", platforms={"webhook": hook}) as there:
            del os.environ["HOOK_SECRET_OF_A_TEST"]
            done = run("gateway", "restart", SEGUE_HOME=str(there.home))
            assert (done.returncode, done.stdout, done.stderr) == (0, "The gateway has begun anew.\n", "")
    finally:
        os.environ.pop("HOOK_SECRET_OF_A_TEST", None)
