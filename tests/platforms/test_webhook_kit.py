"""Webhooks do as every adapter does."""

import asyncio

import pytest
from webhook_counterpart import WebhookCounterpart

from segue.testing.kit import Case, cases_for


@pytest.mark.parametrize("case", cases_for(WebhookCounterpart.cannot), ids=str)
def test_webhooks_do_as_every_adapter_does(case: Case) -> None:
    asyncio.run(case.run(WebhookCounterpart()))
